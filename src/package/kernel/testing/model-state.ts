export interface ModelVerdict {
  status: string;
  text: string;
  by: string;
  groups: readonly string[];
  pushed: boolean;
  /** The input of this condition in the package. */
  saw: string;
  /** Milliseconds since the epoch. */
  at: number;
}

export interface ModelRevision {
  place: 'draft' | 'proposed' | 'tag' | 'main';
  version: string;
  number: number;
  commit: string;
  content: number;
  object: number | undefined;
  gates: string[];
  conditions: Map<string, { status: string; text: string }>;
  broken: boolean;
}

/** Facts about a revision besides its branch. */
export interface ModelRecord {
  commit: string;
  given: Map<string, ModelVerdict>;
  contributors: Set<string>;
  /** The content that each approver approved, and the merge that this decided. */
  approvals: Map<string, ModelApproval>;
  /** Gates of the proposal. */
  required: string[];
  /** It was proposed, and with which gates is not known. */
  lost: boolean;
  /** Its last step was a rejection: if it is proposed nevertheless, others restored its branch. */
  rejected: boolean;
  proposer: string | undefined;
  /** The commit of the main branch that the server based the draft on, and the tree that its content is derived from. */
  base?: { commit: string; tree: string | undefined } | undefined;
}

export interface ModelApproval {
  content: string;
  /** The package that a merge of the Git host publishes, and when that was decided, in milliseconds since the epoch. */
  decided?: { tree: string; at: number };
}

export interface ModelRequest {
  action: string;
  actor: string;
  groups: readonly string[];
  isController: boolean;
  expected: string | undefined;
  reason: string | undefined;
  breakGlass: boolean;
  /** The commit that the Git host is said to have made of the proposal, whether a bypass is to be recorded, and who objected. */
  merged: { commit: string; recordBypass: boolean; objection?: string } | undefined;
  /** The Git host publishes: it is only decided. */
  byMerge: boolean;
}

export function copyOf(entry: ModelRevision): ModelRevision {
  return { ...entry, gates: [...entry.gates], conditions: new Map(entry.conditions) };
}
