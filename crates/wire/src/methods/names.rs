//! The names of requests and notifications, in both directions.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($variant),+
        }

        impl $kind {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

names! {
    /// What a client may ask of the host.
    Method {
        Initialize = "initialize",
        Ping = "ping",
        Reconnect = "reconnect",
        Subscribe = "subscribe",
        CreateSession = "createSession",
        DisposeSession = "disposeSession",
        CreateChat = "createChat",
        DisposeChat = "disposeChat",
        MoveChat = "moveChat",
        CreateTerminal = "createTerminal",
        DisposeTerminal = "disposeTerminal",
        CreateResourceWatch = "createResourceWatch",
        ListSessions = "listSessions",
        ResourceRead = "resourceRead",
        ResourceWrite = "resourceWrite",
        ResourceList = "resourceList",
        ResourceCopy = "resourceCopy",
        ResourceDelete = "resourceDelete",
        ResourceMove = "resourceMove",
        ResourceResolve = "resourceResolve",
        ResourceMkdir = "resourceMkdir",
        ResourceRequest = "resourceRequest",
        FetchTurns = "fetchTurns",
        Authenticate = "authenticate",
        ResolveSessionConfig = "resolveSessionConfig",
        SessionConfigCompletions = "sessionConfigCompletions",
        Completions = "completions",
        InvokeChangesetOperation = "invokeChangesetOperation",
        ListAutomationTriggerDefinitions = "listAutomationTriggerDefinitions",
        RunAutomation = "runAutomation",
        FetchAutomationRuns = "fetchAutomationRuns",
        AddModel = "x-addModel",
        ReloadModels = "x-reloadModels",
        ImportSession = "x-importSession",
        Compose = "x-compose",
    }
}

names! {
    /// What the host may ask of a client.
    HostRequest {
        ResourceRead = "resourceRead",
        ResourceWrite = "resourceWrite",
        ResourceList = "resourceList",
        ResourceCopy = "resourceCopy",
        ResourceDelete = "resourceDelete",
        ResourceMove = "resourceMove",
        ResourceResolve = "resourceResolve",
        ResourceMkdir = "resourceMkdir",
        ResourceRequest = "resourceRequest",
        CreateResourceWatch = "createResourceWatch",
    }
}

names! {
    /// Notifications from a client to the host.
    ClientNotification {
        Unsubscribe = "unsubscribe",
        DispatchAction = "dispatchAction",
    }
}

names! {
    /// Notifications from the host to a client.
    HostNotification {
        Action = "action",
        SessionAdded = "root/sessionAdded",
        SessionRemoved = "root/sessionRemoved",
        SessionSummaryChanged = "root/sessionSummaryChanged",
        Progress = "root/progress",
        AuthRequired = "auth/required",
        ExportLogs = "otlp/exportLogs",
        ExportTraces = "otlp/exportTraces",
        ExportMetrics = "otlp/exportMetrics",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_itself() {
        assert_eq!(Method::ALL.len(), 35);
        assert_eq!(HostRequest::ALL.len(), 10);
        assert_eq!(ClientNotification::ALL.len(), 2);
        assert_eq!(HostNotification::ALL.len(), 9);
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(*method));
        }
        for method in HostNotification::ALL {
            assert_eq!(HostNotification::from_name(method.name()), Some(*method));
        }
        assert_eq!(HostRequest::from_name("subscribe"), None);
        assert_eq!(
            ClientNotification::from_name("unsubscribe").map(|n| n.name()),
            Some("unsubscribe")
        );
    }
}
