import type { ExternalFact } from '../../package/model/record.ts';

/** What `sluice why` says about one revision, as data. */
export interface Explanation {
  readonly name: string;
  readonly repository: string;
  readonly package: string;
  readonly workspace: string;
  readonly lifecycle: string;
  /** -1 placeholder on the main branch, 0 before publication. */
  readonly revision: number;
  readonly latest: boolean;
  readonly commit: string;
  /** The last one who moved or changed it; not told of placeholders. */
  readonly last?: { readonly by: string; readonly at: string; readonly action: string };
  /** `enforce`, `warn` or `off`: how far its repository enforces gates. */
  readonly enforcement: string;
  readonly gates: readonly GateExplanation[];
  /** Who changed its content since the last published revision; `push` is an unknown person. */
  readonly contributors: readonly { readonly name: string; readonly face: string; readonly since: string }[];
  /** Set for what is proposed. */
  readonly approvals?: ApprovalExplanation;
  /** Why it is where it is, besides gates. */
  readonly reasons: readonly Reason[];
  /** Who works on a draft, in the order in which they run; the pipeline first. Empty for what is no draft. */
  readonly resolvers: readonly ResolverExplanation[];
  readonly delivery: readonly DeliveryExplanation[];
  /** Commands that would move it on, the most likely first; words where a rule of the Git host has to be changed before. */
  readonly next: readonly string[];
}

export interface ApprovalExplanation {
  readonly needed: number;
  /** Those that count. */
  readonly given: readonly { readonly subject: string; readonly face: string; readonly at: string }[];
  /** Who must not approve it. */
  readonly barred: readonly { readonly name: string; readonly because: string }[];
}

export interface GateExplanation {
  readonly type: string;
  readonly open: boolean;
  /** Open, Missing, NotTrue, Unproven, Stale, Expired or NotAllowed. */
  readonly state: string;
  readonly requiredBy: readonly string[];
  /** Asked for at approval, not at proposal. */
  readonly approveOnly: boolean;
  readonly condition?: { readonly status: string; readonly reason?: string; readonly message?: string };
  /** Since when it is as it is, RFC 3339. */
  readonly since?: string;
  readonly explanation: string;
  /** What the verdict was given for. */
  readonly boundTo: readonly string[];
  /** Of these, what has changed since. */
  readonly changed: readonly string[];
  /** What the verdict rests on besides the package. */
  readonly external?: readonly ExternalFact[];
  readonly givenBy?: string;
  readonly givenAt?: string;
  /** When the condition stops counting, RFC 3339, where a policy limits that. */
  readonly expires?: string;
  readonly settledBy: string;
  readonly deadline?: { readonly due: string; readonly overdue: boolean };
  readonly next?: string;
}

export interface Reason {
  /** One CamelCase word for programs. */
  readonly reason: string;
  readonly message: string;
}

export interface ResolverExplanation {
  readonly name: string;
  /** Condition types, or prefixes, that it settles. */
  readonly claims: readonly string[];
  /** Condition types, or prefixes, that must be True before it runs. */
  readonly waitsFor: readonly string[];
}

export interface DeliveryExplanation {
  /** Name of the DeliveryTarget, or the repository itself if it is a deployment repository. */
  readonly target: string;
  /** `Held`: it stays delivered though it, or a later revision, does not count. */
  readonly state: 'Delivered' | 'Held' | 'OtherRevision' | 'NotDelivered' | 'Unknown';
  readonly commit?: string;
  readonly message: string;
}
