// What the host sends, as far as the page reads it. Made by `cargo run -p xtask -- gen`; not to be edited.
//
// A host of a later version sends kinds and values that are not in here: they come as they are, and are passed over.

export interface ActiveTurn {
  id: string;
  startedAt: string;
  message: Message;
  responseParts: ResponsePart[];
  usage?: UsageInfo;
}

export interface AgentCapabilities {
  multipleChats?: MultipleChatsCapability;
  multipleWorkingDirectories?: MultipleWorkingDirectoriesCapability;
}

export interface AgentCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enabled?: boolean;
  description?: string;
  model?: string;
  tools?: string[];
  disableModelInvocation?: boolean;
  disableUserInvocation?: boolean;
}

export interface AgentInfo {
  provider: string;
  displayName: string;
  description: string;
  models: SessionModelInfo[];
  protectedResources?: ProtectedResourceMetadata[];
  customizations?: Customization[];
  capabilities?: AgentCapabilities;
}

export interface AgentSelection {
  uri: string;
}

export interface AhpMcpUiHostCapabilities {
  serverTools?: any;
  serverResources?: any;
  logging?: Record<string, any>;
  sampling?: any;
}

export interface AnnotationsSummary {
  resource: string;
  annotationCount: number;
  entryCount: number;
}

export interface AutomationSessionOrigin {
  automation: string;
  run: string;
}

export interface BackgroundShellWork {
  id: string;
  label: string;
  startedAt: string;
  _meta?: Record<string, any>;
  command: string;
  terminal?: string;
}

export interface BackgroundSubagentWork {
  id: string;
  label: string;
  startedAt: string;
  _meta?: Record<string, any>;
  chat: string;
}

export type BackgroundWork =
  | ({ kind: 'shell' } & BackgroundShellWork)
  | ({ kind: 'subagent' } & BackgroundSubagentWork);

export interface CanvasReference {
  resource: string;
}

export interface ChangesSummary {
  additions?: number;
  deletions?: number;
  files?: number;
}

export interface Changeset {
  label: string;
  uriTemplate: string;
  description?: string;
  changeKind: string;
  capabilities?: ChangesetCapabilities;
}

export interface ChangesetCapabilities {
  review?: Record<string, any>;
}

export type ChatInputAnswer =
  | ({ state: 'draft' } & ChatInputAnswered)
  | ({ state: 'submitted' } & ChatInputAnswered)
  | ({ state: 'skipped' } & ChatInputSkipped);

export type ChatInputAnswerValue =
  | ({ kind: 'text' } & ChatInputTextAnswerValue)
  | ({ kind: 'number' } & ChatInputNumberAnswerValue)
  | ({ kind: 'boolean' } & ChatInputBooleanAnswerValue)
  | ({ kind: 'selected' } & ChatInputSelectedAnswerValue)
  | ({ kind: 'selected-many' } & ChatInputSelectedManyAnswerValue);

export interface ChatInputAnswered {
  value: ChatInputAnswerValue;
}

export interface ChatInputBooleanAnswerValue {
  value: boolean;
}

export interface ChatInputBooleanQuestion {
  id: string;
  title?: string;
  message: string;
  required?: boolean;
  defaultValue?: boolean;
}

export interface ChatInputMultiSelectQuestion {
  id: string;
  title?: string;
  message: string;
  required?: boolean;
  options: ChatInputOption[];
  allowFreeformInput?: boolean;
  min?: number;
  max?: number;
}

export interface ChatInputNumberAnswerValue {
  value: number;
}

export interface ChatInputNumberQuestion {
  id: string;
  title?: string;
  message: string;
  required?: boolean;
  min?: number;
  max?: number;
  defaultValue?: number;
}

export interface ChatInputOption {
  id: string;
  label: string;
  description?: string;
  recommended?: boolean;
}

export type ChatInputQuestion =
  | ({ kind: 'text' } & ChatInputTextQuestion)
  | ({ kind: 'number' } & ChatInputNumberQuestion)
  | ({ kind: 'integer' } & ChatInputNumberQuestion)
  | ({ kind: 'boolean' } & ChatInputBooleanQuestion)
  | ({ kind: 'single-select' } & ChatInputSingleSelectQuestion)
  | ({ kind: 'multi-select' } & ChatInputMultiSelectQuestion);

export interface ChatInputRequest {
  id: string;
  message?: string;
  url?: string;
  questions?: ChatInputQuestion[];
  answers?: Record<string, ChatInputAnswer>;
}

export type ChatInputResponseKind =
  | 'accept'
  | 'decline'
  | 'cancel';

export interface ChatInputSelectedAnswerValue {
  value: string;
  freeformValues?: string[];
}

export interface ChatInputSelectedManyAnswerValue {
  value: string[];
  freeformValues?: string[];
}

export interface ChatInputSingleSelectQuestion {
  id: string;
  title?: string;
  message: string;
  required?: boolean;
  options: ChatInputOption[];
  allowFreeformInput?: boolean;
}

export interface ChatInputSkipped {
  freeformValues?: string[];
}

export interface ChatInputTextAnswerValue {
  value: string;
}

export interface ChatInputTextQuestion {
  id: string;
  title?: string;
  message: string;
  required?: boolean;
  format?: string;
  min?: number;
  max?: number;
  defaultValue?: string;
}

export type ChatInteractivity =
  | 'full'
  | 'read-only'
  | 'hidden';

export type ChatOrigin =
  | { kind: 'user' }
  | { kind: 'fork'; chat: string; turnId: string }
  | { kind: 'sideChat'; chat: string; turnId: string; selection?: SideChatSelection }
  | { kind: 'tool'; chat: string; toolCallId: string };

export interface ChatState {
  resource: string;
  title: string;
  status: number;
  activity?: string;
  modifiedAt: string;
  changes?: ChangesSummary;
  origin?: ChatOrigin;
  movable?: boolean;
  interactivity?: ChatInteractivity;
  workingDirectories?: string[];
  changesets?: Changeset[];
  backgroundWork?: BackgroundWork[];
  canvases?: CanvasReference[];
  turns: Turn[];
  turnsNextCursor?: string;
  activeTurn?: ActiveTurn;
  steeringMessage?: PendingMessage;
  queuedMessages?: PendingMessage[];
  draft?: Message;
  _meta?: Record<string, any>;
}

export interface ChatSummary {
  resource: string;
  title: string;
  status: number;
  activity?: string;
  modifiedAt: string;
  changes?: ChangesSummary;
  origin?: ChatOrigin;
  movable?: boolean;
  interactivity?: ChatInteractivity;
  workingDirectories?: string[];
}

export type ChildCustomization =
  | ({ type: 'agent' } & AgentCustomization)
  | ({ type: 'skill' } & SkillCustomization)
  | ({ type: 'prompt' } & PromptCustomization)
  | ({ type: 'rule' } & RuleCustomization)
  | ({ type: 'hook' } & HookCustomization)
  | ({ type: 'mcpServer' } & McpServerCustomization);

export interface ClientPluginCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  clientId?: string;
  load?: CustomizationLoadState;
  children?: ChildCustomization[];
  type: CustomizationType;
  enablement?: CustomizationEnablement[];
  version?: string;
  nonce?: string;
  childEnablement?: Record<string, CustomizationEnablement[]>;
}

export interface ConfigPropertySchema {
  type: string;
  title: string;
  description?: string;
  default?: any;
  enum?: any[];
  enumLabels?: string[];
  enumDescriptions?: string[];
  readOnly?: boolean;
  items?: ConfigPropertySchema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, ConfigPropertySchema>;
  required?: string[];
  additionalProperties?: ConfigPropertySchema;
}

export interface ConfigSchema {
  type: string;
  properties: Record<string, ConfigPropertySchema>;
  required?: string[];
}

export interface ConfirmationOption {
  id: string;
  label: string;
  kind: ConfirmationOptionKind;
  group?: number;
}

export type ConfirmationOptionKind = 'approve' | 'deny' | (string & {});

export interface ContentRef {
  uri: string;
  sizeHint?: number;
  contentType?: string;
  nonce?: string;
}

export type Customization =
  | ({ type: 'plugin' } & PluginCustomization)
  | ({ type: 'directory' } & DirectoryCustomization)
  | ({ type: 'mcpServer' } & McpServerCustomization);

export interface CustomizationDegradedState {
  message: string;
}

export type CustomizationEnablement =
  | { kind: 'global'; enabled: boolean }
  | { kind: 'workspace'; uri: string; enabled: boolean }
  | { kind: 'session'; enabled: boolean };

export interface CustomizationErrorState {
  message: string;
}

export type CustomizationLoadState =
  | ({ kind: 'loading' } & CustomizationLoadingState)
  | ({ kind: 'loaded' } & CustomizationLoadedState)
  | ({ kind: 'degraded' } & CustomizationDegradedState)
  | ({ kind: 'error' } & CustomizationErrorState);

export interface CustomizationLoadedState {
}

export interface CustomizationLoadingState {
}

export type CustomizationType = 'plugin' | 'directory' | 'agent' | 'skill' | 'prompt' | 'rule' | 'hook' | 'mcpServer' | (string & {});

export interface DirectoryCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  clientId?: string;
  load?: CustomizationLoadState;
  children?: ChildCustomization[];
  enabled: boolean;
  contents: CustomizationType;
  writable: boolean;
}

export interface ErrorInfo {
  errorType: string;
  message: string;
  stack?: string;
  _meta?: Record<string, any>;
}

export interface ErrorResponsePart {
  error: ErrorInfo;
  resumable?: boolean;
}

export interface FileEdit {
  before?: FileEditSide;
  after?: FileEditSide;
  diff?: FileEditDiffStats;
}

export interface FileEditCollection {
  items: FileEdit[];
}

export interface FileEditDiffStats {
  added?: number;
  removed?: number;
}

export interface FileEditSide {
  uri: string;
  content: ContentRef;
}

export interface HookCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enabled?: boolean;
}

export interface Icon {
  src: string;
  contentType?: string;
  sizes?: string[];
  theme?: string;
}

export interface InputRequestResponsePart {
  request: ChatInputRequest;
  response?: ChatInputResponseKind;
}

export interface MarkdownResponsePart {
  id: string;
  content: string;
}

export type McpAuthRequiredReason = 'required' | 'expired' | 'insufficientScope' | (string & {});

export interface McpAuthRequirement {
  reason: McpAuthRequiredReason;
  oauthClient?: McpOAuthClient;
  resource: ProtectedResourceMetadata;
  requiredScopes?: string[];
  description?: string;
}

export interface McpOAuthClient {
  clientId: string;
  clientSecret?: string;
}

export interface McpServerAuthRequiredState {
  reason: McpAuthRequiredReason;
  oauthClient?: McpOAuthClient;
  resource: ProtectedResourceMetadata;
  requiredScopes?: string[];
  description?: string;
}

export interface McpServerCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enablement?: CustomizationEnablement[];
  state: McpServerState;
  channel?: string;
  mcpApp?: McpServerCustomizationApps;
}

export interface McpServerCustomizationApps {
  capabilities: AhpMcpUiHostCapabilities;
}

export interface McpServerErrorState {
  error: ErrorInfo;
}

export interface McpServerReadyState {
}

export interface McpServerStartingState {
  blocking?: boolean;
}

export type McpServerState =
  | ({ kind: 'starting' } & McpServerStartingState)
  | ({ kind: 'ready' } & McpServerReadyState)
  | ({ kind: 'authRequired' } & McpServerAuthRequiredState)
  | ({ kind: 'error' } & McpServerErrorState)
  | ({ kind: 'stopped' } & McpServerStoppedState);

export interface McpServerStoppedState {
}

export interface Message {
  text: string;
  origin: MessageOrigin;
  attachments?: MessageAttachment[];
  model?: ModelSelection;
  agent?: AgentSelection;
  _meta?: Record<string, any>;
}

export interface MessageAnnotationsAttachment {
  label: string;
  range?: TextRange;
  displayKind?: string;
  _meta?: Record<string, any>;
  resource: string;
  annotationIds?: string[];
}

export type MessageAttachment =
  | ({ type: 'simple' } & SimpleMessageAttachment)
  | ({ type: 'embeddedResource' } & MessageEmbeddedResourceAttachment)
  | ({ type: 'resource' } & MessageResourceAttachment)
  | ({ type: 'annotations' } & MessageAnnotationsAttachment)
  | ({ type: 'chat' } & MessageChatAttachment);

export interface MessageChatAttachment {
  label: string;
  range?: TextRange;
  displayKind?: string;
  _meta?: Record<string, any>;
  resource: string;
  endTurn?: string;
}

export interface MessageEmbeddedResourceAttachment {
  label: string;
  range?: TextRange;
  displayKind?: string;
  _meta?: Record<string, any>;
  data: string;
  contentType: string;
  selection?: TextSelection;
}

export type MessageKind = 'user' | 'agent' | 'tool' | 'automation' | 'systemNotification' | (string & {});

export interface MessageOrigin {
  kind: MessageKind;
}

export interface MessageResourceAttachment {
  label: string;
  range?: TextRange;
  displayKind?: string;
  _meta?: Record<string, any>;
  uri: string;
  sizeHint?: number;
  contentType?: string;
  nonce?: string;
  selection?: TextSelection;
}

export interface ModelSelection {
  id: string;
  config?: Record<string, any>;
}

export interface MultipleChatsCapability {
  fork?: boolean;
  sideChat?: boolean;
}

export interface MultipleWorkingDirectoriesCapability {
  immutablePrimary?: boolean;
  primaryReplacement?: boolean;
}

export interface PendingMessage {
  id: string;
  message: Message;
}

export interface PluginCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  clientId?: string;
  load?: CustomizationLoadState;
  children?: ChildCustomization[];
  enablement?: CustomizationEnablement[];
  version?: string;
}

export type PolicyState =
  | 'enabled'
  | 'disabled'
  | 'unconfigured';

export interface ProjectInfo {
  uri: string;
  displayName: string;
}

export interface PromptCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enabled?: boolean;
  description?: string;
}

export interface ProtectedResourceMetadata {
  resource: string;
  resource_name?: string;
  authorization_servers?: string[];
  jwks_uri?: string;
  scopes_supported?: string[];
  bearer_methods_supported?: string[];
  resource_signing_alg_values_supported?: string[];
  resource_documentation?: string;
  resource_policy_uri?: string;
  resource_tos_uri?: string;
  required?: boolean;
}

export interface ReasoningResponsePart {
  id: string;
  content: string;
}

export interface ResourceResponsePart {
  uri: string;
  sizeHint?: number;
  contentType?: string;
  nonce?: string;
}

export type ResponsePart =
  | ({ kind: 'markdown' } & MarkdownResponsePart)
  | ({ kind: 'contentRef' } & ResourceResponsePart)
  | ({ kind: 'toolCall' } & ToolCallResponsePart)
  | ({ kind: 'reasoning' } & ReasoningResponsePart)
  | ({ kind: 'systemNotification' } & SystemNotificationResponsePart)
  | ({ kind: 'inputRequest' } & InputRequestResponsePart)
  | ({ kind: 'error' } & ErrorResponsePart);

export interface RootConfigState {
  schema: ConfigSchema;
  values: Record<string, any>;
}

export interface RootState {
  agents: AgentInfo[];
  activeSessions?: number;
  terminals?: TerminalInfo[];
  config?: RootConfigState;
  _meta?: Record<string, any>;
}

export interface RuleCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enabled?: boolean;
  description?: string;
  alwaysApply?: boolean;
  globs?: string[];
}

export interface SessionActiveClient {
  clientId: string;
  displayName?: string;
  tools: ToolDefinition[];
  customizations?: ClientPluginCustomization[];
}

export interface SessionChatInputRequest {
  id: string;
  chat: string;
  request: ChatInputRequest;
}

export interface SessionChatSummary {
  resource: string;
  title: string;
  origin?: ChatOrigin;
  interactivity?: ChatInteractivity;
  status?: number;
  changes?: ChangesSummary;
}

export interface SessionConfigPropertySchema {
  type: string;
  title: string;
  description?: string;
  default?: any;
  enum?: any[];
  enumLabels?: string[];
  enumDescriptions?: string[];
  readOnly?: boolean;
  items?: ConfigPropertySchema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, ConfigPropertySchema>;
  required?: string[];
  additionalProperties?: ConfigPropertySchema;
  enumDynamic?: boolean;
  sessionMutable?: boolean;
}

export interface SessionConfigSchema {
  type: string;
  properties: Record<string, SessionConfigPropertySchema>;
  required?: string[];
}

export interface SessionConfigState {
  schema: SessionConfigSchema;
  values: Record<string, any>;
}

export type SessionInputRequest =
  | ({ kind: 'chatInput' } & SessionChatInputRequest)
  | ({ kind: 'toolConfirmation' } & SessionToolConfirmationRequest)
  | ({ kind: 'toolClientExecution' } & SessionToolClientExecutionRequest)
  | ({ kind: 'toolAuthentication' } & SessionToolAuthenticationRequest);

export type SessionLifecycle = 'creating' | 'ready' | 'failed' | (string & {});

export interface SessionModelInfo {
  id: string;
  provider: string;
  name: string;
  maxContextWindow?: number;
  maxOutputTokens?: number;
  maxPromptTokens?: number;
  supportsVision?: boolean;
  policyState?: PolicyState;
  configSchema?: ConfigSchema;
  _meta?: Record<string, any>;
}

export type SessionOrigin =
  | ({ kind: 'automation' } & AutomationSessionOrigin);

export interface SessionState {
  provider: string;
  title: string;
  status: number;
  activity?: string;
  origin?: SessionOrigin;
  project?: ProjectInfo;
  workingDirectories?: string[];
  annotations?: AnnotationsSummary;
  lifecycle: SessionLifecycle;
  creationError?: ErrorInfo;
  serverTools?: ToolDefinition[];
  activeClients: SessionActiveClient[];
  chats: ChatSummary[];
  defaultChat?: string;
  config?: SessionConfigState;
  customizations?: Customization[];
  changesets?: Changeset[];
  inputNeeded?: SessionInputRequest[];
  _meta?: Record<string, any>;
}

export interface SessionSummary {
  provider: string;
  title: string;
  status: number;
  activity?: string;
  origin?: SessionOrigin;
  project?: ProjectInfo;
  workingDirectories?: string[];
  annotations?: AnnotationsSummary;
  resource: string;
  createdAt: string;
  modifiedAt: string;
  changes?: ChangesSummary;
  _meta?: Record<string, any>;
  chats?: SessionChatSummary[];
  defaultChat?: string;
}

export interface SessionToolAuthenticationRequest {
  id: string;
  chat: string;
  turnId: string;
  toolCall: ToolCallAuthRequiredState;
}

export interface SessionToolClientExecutionRequest {
  id: string;
  chat: string;
  turnId: string;
  clientId: string;
  toolCall: ToolCallRunningState;
}

export interface SessionToolConfirmationRequest {
  id: string;
  chat: string;
  turnId: string;
  toolCall: ToolCallConfirmationState;
}

export interface SideChatSelection {
  text: string;
  responsePartId?: string;
}

export interface SimpleMessageAttachment {
  label: string;
  range?: TextRange;
  displayKind?: string;
  _meta?: Record<string, any>;
  modelRepresentation?: string;
}

export interface SkillCustomization {
  id: string;
  uri: string;
  name: string;
  icons?: Icon[];
  range?: TextRange;
  _meta?: Record<string, any>;
  enabled?: boolean;
  description?: string;
  disableModelInvocation?: boolean;
  disableUserInvocation?: boolean;
}

export type StringOrMarkdown =
  | string
  | { markdown: string };

export interface SystemNotificationResponsePart {
  content: StringOrMarkdown;
  _meta?: Record<string, any>;
}

export type TerminalClaim =
  | ({ kind: 'client' } & TerminalClientClaim)
  | ({ kind: 'session' } & TerminalSessionClaim);

export interface TerminalClientClaim {
  clientId: string;
}

export interface TerminalCommandResult {
  exitCode?: number;
  preview?: string;
  truncated?: boolean;
}

export interface TerminalExitedLifecycleState {
  exitCode?: number;
}

export interface TerminalInfo {
  resource: string;
  title: string;
  claim: TerminalClaim;
  lifecycle: TerminalLifecycleState;
}

export type TerminalLifecycleState =
  | ({ status: 'running' } & TerminalRunningLifecycleState)
  | ({ status: 'exited' } & TerminalExitedLifecycleState);

export interface TerminalRunningLifecycleState {
}

export interface TerminalSessionClaim {
  session: string;
  chat: string;
  turnId?: string;
  toolCallId?: string;
}

export interface TextPosition {
  line: number;
  character: number;
}

export interface TextRange {
  start: TextPosition;
  end: TextPosition;
}

export interface TextSelection {
  range: TextRange;
}

export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export interface ToolCallAuthRequiredState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  confirmed: ToolCallConfirmationReason;
  selectedOption?: ConfirmationOption;
  status: ToolCallStatus;
  auth: McpAuthRequirement;
  content?: ToolResultContent[];
}

export type ToolCallCancellationReason =
  | 'denied'
  | 'skipped'
  | 'result-denied';

export interface ToolCallCancelledState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  reason: ToolCallCancellationReason;
  reasonMessage?: StringOrMarkdown;
  userSuggestion?: Message;
  selectedOption?: ConfirmationOption;
}

export interface ToolCallClientContributor {
  clientId: string;
}

export interface ToolCallCompletedState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  success: boolean;
  pastTenseMessage: StringOrMarkdown;
  content?: ToolResultContent[];
  structuredContent?: Record<string, any>;
  error?: any;
  confirmed: ToolCallConfirmationReason;
  selectedOption?: ConfirmationOption;
}

export type ToolCallConfirmationReason = 'not-needed' | 'user-action' | 'setting' | (string & {});

export type ToolCallConfirmationState =
  | ({ status: 'pending-confirmation' } & ToolCallPendingConfirmationState)
  | ({ status: 'pending-result-confirmation' } & ToolCallPendingResultConfirmationState);

export type ToolCallContributor =
  | ({ kind: 'client' } & ToolCallClientContributor)
  | ({ kind: 'mcp' } & ToolCallMcpContributor);

export interface ToolCallMcpContributor {
  customizationId: string;
}

export interface ToolCallPendingConfirmationState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  confirmationTitle?: StringOrMarkdown;
  riskAssessment?: ToolCallRiskAssessment;
  edits?: FileEditCollection;
  editable?: boolean;
  options?: ConfirmationOption[];
}

export interface ToolCallPendingResultConfirmationState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  success: boolean;
  pastTenseMessage: StringOrMarkdown;
  content?: ToolResultContent[];
  structuredContent?: Record<string, any>;
  error?: any;
  confirmed: ToolCallConfirmationReason;
  selectedOption?: ConfirmationOption;
}

export interface ToolCallResponsePart {
  toolCall: ToolCallState;
}

export type ToolCallRiskAssessment =
  | ({ status: 'loading' } & ToolCallRiskAssessmentLoadingState)
  | ({ status: 'complete' } & ToolCallRiskAssessmentCompleteState);

export interface ToolCallRiskAssessmentCompleteState {
  kind: ToolCallRiskAssessmentKind;
  reason: StringOrMarkdown;
  safety: number;
}

export type ToolCallRiskAssessmentKind = 'judge' | (string & {});

export interface ToolCallRiskAssessmentLoadingState {
  kind: ToolCallRiskAssessmentKind;
}

export interface ToolCallRunningState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  invocationMessage: StringOrMarkdown;
  toolInput?: ToolInput;
  confirmed: ToolCallConfirmationReason;
  selectedOption?: ConfirmationOption;
  content?: ToolResultContent[];
}

export type ToolCallState =
  | ({ status: 'streaming' } & ToolCallStreamingState)
  | ({ status: 'pending-confirmation' } & ToolCallPendingConfirmationState)
  | ({ status: 'running' } & ToolCallRunningState)
  | ({ status: 'auth-required' } & ToolCallAuthRequiredState)
  | ({ status: 'pending-result-confirmation' } & ToolCallPendingResultConfirmationState)
  | ({ status: 'completed' } & ToolCallCompletedState)
  | ({ status: 'cancelled' } & ToolCallCancelledState);

export type ToolCallStatus = 'streaming' | 'pending-confirmation' | 'running' | 'auth-required' | 'pending-result-confirmation' | 'completed' | 'cancelled' | (string & {});

export interface ToolCallStreamingState {
  toolCallId: string;
  toolName: string;
  displayName: string;
  intention?: string;
  contributor?: ToolCallContributor;
  _meta?: Record<string, any>;
  partialInput?: string;
  invocationMessage?: StringOrMarkdown;
}

export interface ToolDefinition {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: any;
  outputSchema?: any;
  annotations?: ToolAnnotations;
  _meta?: Record<string, any>;
}

export type ToolInput =
  | string
  | ContentRef;

export type ToolResultContent =
  | ({ type: 'text' } & ToolResultTextContent)
  | ({ type: 'embeddedResource' } & ToolResultEmbeddedResourceContent)
  | ({ type: 'resource' } & ToolResultResourceContent)
  | ({ type: 'fileEdit' } & ToolResultFileEditContent)
  | ({ type: 'terminal' } & ToolResultTerminalContent)
  | ({ type: 'subagent' } & ToolResultSubagentContent);

export interface ToolResultEmbeddedResourceContent {
  data: string;
  contentType: string;
}

export interface ToolResultFileEditContent {
  before?: FileEditSide;
  after?: FileEditSide;
  diff?: FileEditDiffStats;
}

export interface ToolResultResourceContent {
  uri: string;
  sizeHint?: number;
  contentType?: string;
  nonce?: string;
}

export interface ToolResultSubagentContent {
  resource: string;
  title: string;
  agentName?: string;
  description?: string;
}

export interface ToolResultTerminalContent {
  resource: string;
  title: string;
  isPty?: boolean;
  result?: TerminalCommandResult;
}

export interface ToolResultTextContent {
  text: string;
}

export interface Turn {
  id: string;
  startedAt?: string;
  duration?: number;
  message: Message;
  responseParts: ResponsePart[];
  usage?: UsageInfo;
  state: TurnState;
}

export type TurnState =
  | 'complete'
  | 'cancelled'
  | 'error';

export interface UsageInfo {
  inputTokens?: number;
  outputTokens?: number;
  model?: string;
  cacheReadTokens?: number;
  _meta?: Record<string, any>;
}
