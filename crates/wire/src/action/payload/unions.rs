//! The closed unions of the published types: those without a variant for unknown values. A type
//! does not reveal its variants while it reads.
//!
//! Promises: a union or variant that is missing here fails a test.
//! Must not know: which types hold them.

pub(super) struct ClosedUnion {
    pub name: &'static str,
    /// The field that names the variant.
    pub tag: &'static str,
    /// The name of each variant and the struct it holds, in the order of the type.
    pub variants: &'static [(&'static str, &'static str)],
}

pub(super) const UNIONS: [ClosedUnion; 8] = [
    ClosedUnion {
        name: "TerminalClaim",
        tag: "kind",
        variants: &[("client", "TerminalClientClaim"), ("session", "TerminalSessionClaim")],
    },
    ClosedUnion {
        name: "TerminalLifecycleState",
        tag: "status",
        variants: &[
            ("running", "TerminalRunningLifecycleState"),
            ("exited", "TerminalExitedLifecycleState"),
        ],
    },
    ClosedUnion {
        name: "ChatInputAnswer",
        tag: "state",
        variants: &[
            ("draft", "ChatInputAnswered"),
            ("submitted", "ChatInputAnswered"),
            ("skipped", "ChatInputSkipped"),
        ],
    },
    ClosedUnion {
        name: "CustomizationLoadState",
        tag: "kind",
        variants: &[
            ("loading", "CustomizationLoadingState"),
            ("loaded", "CustomizationLoadedState"),
            ("degraded", "CustomizationDegradedState"),
            ("error", "CustomizationErrorState"),
        ],
    },
    ClosedUnion {
        name: "AutomationTrigger",
        tag: "kind",
        variants: &[("schedule", "AutomationScheduleTrigger"), ("event", "AutomationEventTrigger")],
    },
    ClosedUnion {
        name: "AutomationDisableCondition",
        tag: "kind",
        variants: &[
            ("afterRuns", "AutomationAfterRunsCondition"),
            ("afterDate", "AutomationAfterDateCondition"),
        ],
    },
    ClosedUnion {
        name: "AutomationRunOrigin",
        tag: "kind",
        variants: &[
            ("manual", "AutomationManualRunOrigin"),
            ("trigger", "AutomationTriggeredRunOrigin"),
        ],
    },
    ClosedUnion {
        name: "AutomationRunLifecycle",
        tag: "status",
        variants: &[
            ("pending", "AutomationPendingRunLifecycle"),
            ("running", "AutomationRunningRunLifecycle"),
            ("completed", "AutomationCompletedRunLifecycle"),
            ("failed", "AutomationFailedRunLifecycle"),
            ("cancelled", "AutomationCancelledRunLifecycle"),
        ],
    },
];
