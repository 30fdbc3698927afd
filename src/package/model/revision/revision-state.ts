import type { Oid } from '../../../git/git-repository.ts';
import type { Actor, EntryPoint } from '../../../resource/object/request-context.ts';
import type { Gate, GateFacts } from '../gates/gates.ts';
import type { Approval, Contributor } from '../record/record.ts';

export const LIFECYCLES = ['Draft', 'Proposed', 'Published', 'DeletionProposed'] as const;
export type Lifecycle = (typeof LIFECYCLES)[number];

export const ACTIONS = ['propose', 'reject', 'approve', 'propose-deletion', 'undo-deletion', 'delete'] as const;
/** `reject` sends a proposed revision back to its authors; on a revision proposed for deletion it means `undo-deletion`. */
export type Action = (typeof ACTIONS)[number];

export interface TransitionRequest {
  readonly action: Action;
  readonly actor: Actor;
  readonly face: EntryPoint;
  /** The commit that the request is based on. Any other commit is a conflict. */
  readonly expectedCommit?: Oid;
  /** The actor gave no version of the revision: the current one may not be the one that they read. */
  readonly isUnseen?: boolean;
  /** Reason; a rejection should have one, and break-glass requires one. */
  readonly reason?: string;
  /** The actor wants to publish with closed gates; a policy names who may. */
  readonly breakGlass?: boolean;
  /** The Git host merged the proposal: its commit becomes the publication, and the main branch does not move. */
  readonly merged?: MergedProposal;
  /**
   * The Git host publishes by a merge, since its rules reserve the main branch for that: an approval that would publish is recorded as decided
   * for this commit, and publishes nothing yet.
   */
  readonly byMerge?: boolean;
  /** Refuse an approval that leaves others missing, instead of recording it: of the decision that a merge follows from at once. */
  readonly mustSuffice?: boolean;
  /** The namespaces whose PackagePolicies the actor may change, as far as the package can change policies of them. */
  readonly mayChangePoliciesIn?: readonly string[];
  /** A required condition that the caller found to be false now, whatever is recorded: its gate is closed. */
  readonly closedNow?: string;
}

/** A proposal that the Git host merged into the main branch, by a merge commit, as a squash or by rebasing it. */
export interface MergedProposal {
  /** The commit that this made on the main branch; of several, the last one. */
  readonly commit: Oid;
  /** When it was merged, by the clock of the host, RFC 3339: rules about time are judged as of then. Absent: as of now. */
  readonly at?: string;
  /**
   * Record the publication although gates are closed or approvals are missing, since the merge cannot be refused any more. It is out of
   * band then, and its statement lists what was bypassed.
   */
  readonly recordBypass?: boolean;
  /** Why no user who may approve stands behind the merge; absent if the actor of the request does. */
  readonly notApproved?: string;
  /** Which reviewers requested changes before the merge, in words that end a sentence: a bypass of the review that is no gate yet. */
  readonly objection?: string;
  /**
   * What was merged, where that is the branch of proposals: what it changes on the main branch besides their packages was judged by nothing. Absent
   * for branches of users, whose packages are judged one by one.
   */
  readonly head?: MergedBranch;
  /** Approvals of the merged content in reviews, by other users than the actor of the request; the record need not have them. */
  readonly approvals?: readonly ReviewApproval[];
}

export interface MergedBranch {
  readonly commit: Oid;
  /** Folders of the packages that it proposes, from the root of the repository. */
  readonly paths: readonly string[];
  /** A commit of the main branch from before the merge, where the host reports one. */
  readonly onto?: Oid;
}

/** Files outside of its packages that the merge of a branch changes on the main branch. */
export interface ForeignFiles {
  /** The first ones, sorted. */
  readonly files: readonly string[];
  /** How many there are. */
  readonly count: number;
  /** It could not be found out, since the branch and the main branch have no common commit near enough. */
  readonly isUnknown?: true;
}

/** The approval of a user in a review of a pull request. */
export interface ReviewApproval {
  readonly subject: string;
  readonly groups?: readonly string[];
  /** RFC 3339. */
  readonly at: string;
  /** Address of the review. */
  readonly evidence: string;
}

/** The commit of a merge, as far as it is relevant for the publication of a proposal. */
export interface MergeFacts {
  /** On the first-parent line of the main branch, where publications are. */
  readonly isOnMain: boolean;
  /** First parent. */
  readonly onto: Oid | undefined;
  /**
   * The package in it is that of the proposal, or one with the same content from before a condition changed: for which a merge was decided, or which
   * the merged head has, with the same gates.
   */
  readonly hasProposedTree: boolean;
  /** The last publication of the package, where its commit is above this one: the highest number has to be the newest content. */
  readonly later?: Pick<LaterPublication, 'name' | 'revision'>;
}

/** The input of the kernel: one revision and its environment. Plain values, read at one point in time. */
export interface RevisionState {
  readonly name: string;
  readonly lifecycle: Lifecycle;
  /** -1 placeholder on the main branch, 0 not published, else the published number. */
  readonly revision: number;
  /** The commit of the revision. For an annotated tag this is its target, and plans use that commit too. */
  readonly commit: Oid;
  /** Reason why the Kptfile cannot be read; undefined if it can. */
  readonly problem: string | undefined;
  /** Errors that kpt reports for the Kptfiles, in one sentence; undefined if there are none. */
  readonly invalidKptfile?: string | undefined;
  readonly facts: GateFacts;
  /** User who last proposed it; undefined if unknown, as after a plain push. */
  readonly proposedBy: string | undefined;
  /** Set where the content was pushed after the proposal. */
  readonly pushedSince?: PushedSince | undefined;
  /** Proposed although its last step is a rejection: another Git client restored its branch. */
  readonly isRestored?: boolean;
  /** Head of the branch of the draft beside a proposal, as it stays where the branch of the proposal was restored. */
  readonly draft?: Oid | undefined;
  /** The last proposal; `isUnchanged` if no push changed it since. Undefined if it was proposed by a plain push. */
  readonly proposal?: { readonly at: string; readonly isUnchanged: boolean } | undefined;
  /** Time of the last publication of the package, in milliseconds since the epoch. */
  readonly lastPublishedAt?: number | undefined;
  /** User who published it, if known from a trusted statement. */
  readonly publishedBy?: string | undefined;
  /** Users who changed the content since the last published revision. */
  readonly contributors: readonly Contributor[];
  /** Approvals so far; those for other content do not count. */
  readonly approvals: readonly Approval[];
  /** Approvals that were given in other namespaces. Default: none. */
  readonly approvalsElsewhere?: readonly Approval[];
  /** All other revisions of the package. */
  readonly siblings: readonly Sibling[];
  /** Path of a package above or below this one, if there is any. */
  readonly nestedWith: string | undefined;
  /** Revisions in any repository that name this one as their upstream. */
  readonly dependents: readonly string[];
  /** Names of the refs involved. */
  readonly refs: RevisionRefs;
  /** Head of the main branch; undefined if the branch does not exist. */
  readonly mainHead: Oid | undefined;
  /** Object id of `refs.deletionProposed`. */
  readonly deletionProposed: Oid | undefined;
  /** The commit of `TransitionRequest.merged`; undefined if there is no such commit, or none in the request. */
  readonly merge?: MergeFacts | undefined;
  /** Of an unpublished revision: the package that its approval replaces. */
  readonly onMain?: PackageOnMain | undefined;
  /** Where the Git host merges, or has merged: what its branch changes besides the package. */
  readonly foreign?: ForeignFiles | undefined;
}

/** The package on the main branch by the ids of its trees, each undefined where there is none. */
export interface PackageOnMain {
  /** At the head of the main branch. */
  readonly tree: Oid | undefined;
  /** In the revision. */
  readonly proposed: Oid | undefined;
  /** At the commit of the main branch that the revision is based on. */
  readonly atBase: Oid | undefined;
  /** What the content of the revision is derived from. */
  readonly derivedFrom: readonly (Oid | undefined)[];
  /** In the latest published revision. */
  readonly published: Oid | undefined;
  /** In a revision that was deleted in order, while its files stayed on the main branch. */
  readonly deleted: Oid | undefined;
  /** Set where it was edited. */
  readonly sides?: EditedSides;
  /** Set where it was published after the revision was made, and the approval would undo that in some files. */
  readonly later?: LaterPublication;
}

/** A publication that a revision of the same package does not contain. */
export interface LaterPublication {
  readonly name: string;
  readonly revision: number;
  /** Files that it changed, and that the revision would change back; relative to the package, and sorted. */
  readonly files: readonly string[];
}

/** Both sides of a conflict. Paths of files are relative to the package, and sorted. */
export interface EditedSides {
  /** The commit of the main branch that the revision is based on; undefined if none was found. */
  readonly base: Oid | undefined;
  /** The first and the last commit that changed the package on the main branch since, as far as they were found. */
  readonly commits: readonly Oid[];
  readonly filesOnMain: readonly string[];
  readonly filesInRevision: readonly string[];
}

/** A push brought content that no request proposed. */
export interface PushedSince {
  /** The commit that was proposed. */
  readonly proposed: Oid;
  /** Files of the package that differ from it; undefined where that commit cannot be read. */
  readonly files: readonly string[] | undefined;
}

export interface Sibling {
  readonly name: string;
  readonly lifecycle: Lifecycle;
  readonly revision: number;
}

export interface RevisionRefs {
  readonly main: string;
  readonly draft: string;
  readonly proposed: string;
  /** Of a published revision. */
  readonly tag: string | undefined;
  readonly deletionProposed: string;
  /** The tag that the n-th revision of this package gets. */
  tagFor(revision: number): string;
  /** The ref that keeps a tag from being created: of this name, above it, or `<tag>/` for those below it. Undefined if there is none. */
  conflictWith(tag: string): string | undefined;
}

/** A ref and its new value; the caller writes the commit for `approval` and `removal`, and the tag for `statement`. */
export interface RefStep {
  readonly ref: string;
  /** Expected old value; null requires that it does not exist. */
  readonly expect: Oid | null;
  readonly become:
    | { readonly kind: 'commit'; readonly oid: Oid }
    /**
     * The package's tree on top of the main head, with the draft as a further parent. Of several packages that are published at once it can be one
     * commit; then the tag has the statement.
     */
    | { readonly kind: 'approval' }
    /** An annotated tag with the statement, on a commit of the Git host. */
    | { readonly kind: 'statement'; readonly on: Oid }
    /** The main head without the package's folder. */
    | { readonly kind: 'removal' }
    | { readonly kind: 'absent' };
}

export type RefusalCode =
  | 'GateUnmet'
  | 'VerdictStale'
  | 'WrongState'
  | 'NestedPackage'
  | 'NotAllowed'
  | 'NotApproved'
  | 'NotMerged'
  | 'ChangesRequested'
  /** The branch also changes files outside of the package, which the Git host would merge with it. */
  | 'ForeignFiles'
  | 'Blocked'
  | 'Conflict'
  /** Another tag keeps those of the package from being created. */
  | 'TagConflict'
  /** The package was edited on the main branch since. */
  | 'Conflicted'
  /** Another revision of the package was published since, which an approval would undo. */
  | 'PublishedSince'
  | 'Unreadable'
  | 'InvalidKptfile'
  | 'InUse';

export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  /** The gate that is closed: its type, since when, its condition, what changed. */
  readonly gate?: Gate;
  /** The rule of a policy, or the freeze, that blocks. */
  readonly blockedBy?: BlockingRule;
  /** The edit on the main branch that would be replaced, and that of the revision. */
  readonly conflict?: EditedSides;
  /** The publication that would be undone. */
  readonly later?: LaterPublication;
}

/**
 * A rule that keeps a proposed revision from being published at present. The last six refuse no approval: approvals of users that are missing, the
 * hold of a WavePlan, users whom a policy maps and who may not approve, and what only a merge of the Git host would do. Texts are without a full stop.
 */
export interface BlockingRule {
  readonly rule:
    | 'Freeze'
    | 'ScheduledFreeze'
    | 'Window'
    | 'Soak'
    | 'InFlight'
    | 'InvalidRule'
    | 'RecordLost'
    | 'SelfApproval'
    | 'Quorum'
    | 'Wave'
    | 'NotPermitted'
    | 'ForeignFiles'
    | 'PublishedSince';
  /** Absent for a Freeze object, a plan, and for policies that forbid self-approval. */
  readonly policy?: string;
  readonly message: string;
  /** Since when it blocks, RFC 3339, if known. */
  readonly since?: string;
  /** Until when it blocks at the latest, RFC 3339, if known. */
  readonly until?: string;
  /** Users, or what else, that can end it. */
  readonly resolvedBy: string;
}

export interface Allowed {
  readonly allowed: true;
  readonly plan: readonly RefStep[];
  /** The resulting state of the revision; undefined if it is deleted. */
  readonly next: { readonly lifecycle: Lifecycle; readonly revision: number } | undefined;
  /** Closed gates that were ignored: the repository does not enforce them, the actor broke the glass, or the Git host merged anyway. */
  readonly bypassed: readonly Refusal[];
  /** The closed gates or blocking rules were bypassed because the actor may use break-glass. */
  readonly brokeGlass?: boolean;
  /** Set where the Git host merged what would have been refused: the publication is recorded, and is out of band. */
  readonly mergeBypass?: {
    /** `bypassed` has enforced gates. */
    readonly gates: boolean;
    /** Why the approvals were not enough. */
    readonly notApproved?: string;
    /** Which reviewers requested changes. */
    readonly objection?: string;
    /** What was merged besides the package. */
    readonly foreign?: string;
  };
  /** The time by which gates and rules were evaluated, where that is the time of an earlier decision, RFC 3339. */
  readonly judgedAt?: string;
  /** Set where an approval counts and is not enough: the revision stays Proposed. */
  readonly approvals?: {
    readonly given: number;
    readonly needed: number;
    /** Rules that a complete set of approvals waits for; a controller publishes once none blocks. */
    readonly waitsFor?: readonly BlockingRule[];
    /** Other namespaces in which one is missing. */
    readonly missingIn: readonly string[];
    /** None is missing, and a merge of the Git host publishes this commit. */
    readonly isDecided?: true;
  };
}

export interface Refused {
  readonly allowed: false;
  readonly refusals: readonly Refusal[];
}

export type Decision = Allowed | Refused;
