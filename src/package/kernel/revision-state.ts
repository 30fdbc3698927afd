import type { Condition } from '../../../kptfile-schema/index.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { PackageInputs } from '../model/content/inputs.ts';
import type { GateFacts } from '../model/gates/gates.ts';
import { PUSH_ACTOR } from '../model/gates/verdict.ts';
import {
  deletionProposedRef,
  draftRef,
  mainRef,
  proposedRef,
  type RepositoryLayout,
  tagRef,
} from '../model/identity/layout.ts';
import { approvalsElsewhere, approvalsIn, type RevisionRecord } from '../model/record/record.ts';
import { isPlaceholder, type PackageRevision } from '../model/revision/package-revision.ts';
import type {
  ForeignFiles,
  Lifecycle,
  MergeFacts,
  PackageOnMain,
  PushedSince,
  RevisionState,
  Sibling,
} from '../model/revision/revision-state.ts';

/** The gates and conditions of a Kptfile; empty if it cannot be read. */
export interface KptfileFacts {
  readonly gates: readonly string[];
  readonly conditions: ReadonlyMap<string, Condition>;
}

/** A revision and its surroundings, read from refs, commits and records at one point in time. */
export interface StateSources {
  readonly layout: RepositoryLayout;
  readonly revision: Pick<PackageRevision, 'name' | 'key' | 'lifecycle' | 'revision' | 'commit' | 'ref'> &
    Partial<Pick<PackageRevision, 'namespace'>>;
  readonly kptfile: KptfileFacts;
  /** Reason why the package cannot be read; undefined if it can. */
  readonly problem: string | undefined;
  readonly invalidKptfile?: string | undefined;
  /** The record at the tip of the revision. */
  readonly record: RevisionRecord;
  readonly inputs: PackageInputs;
  readonly pushedSince?: PushedSince | undefined;
  readonly publishedBy?: string | undefined;
  readonly lastPublishedAt?: number | undefined;
  /** All revisions of the package; this one may be among them. */
  readonly ofPackage: readonly Sibling[];
  readonly nestedWith: string | undefined;
  readonly dependents: readonly string[];
  readonly mainHead: Oid | undefined;
  readonly merge?: MergeFacts | undefined;
  readonly onMain?: PackageOnMain | undefined;
  readonly foreign?: ForeignFiles | undefined;
  refAt(name: string): Oid | undefined;
  /** See `RevisionRefs.conflictWith`. */
  tagConflict(tag: string): string | undefined;
}

/**
 * Derives the state that the kernel decides on. Pure: the same for the server and for the model that the kernel is
 * tested against.
 */
export function stateFrom(sources: StateSources): RevisionState {
  const { layout, revision, kptfile, record, inputs, mainHead } = sources;
  const { name, key, lifecycle, revision: number, commit, ref } = revision;
  const version = number > 0 ? `v${number}` : key.workspace;
  const deletionProposed = deletionProposedRef(layout, key.package, version);
  return {
    ...{ name, lifecycle, revision: number },
    // Every publication moves the main branch; a package on it is at its head.
    commit: isPlaceholder(revision) ? (mainHead ?? commit) : commit,
    problem: sources.problem,
    invalidKptfile: sources.invalidKptfile,
    facts: gateFactsFrom(kptfile, lifecycle, record, inputs),
    proposedBy: proposerOf(record),
    pushedSince: sources.pushedSince,
    isRestored: lifecycle === 'Proposed' && isRejected(record),
    draft: lifecycle === 'Proposed' ? sources.refAt(draftRef(layout, key)) : undefined,
    proposal: proposalOf(record),
    lastPublishedAt: sources.lastPublishedAt,
    publishedBy: sources.publishedBy,
    contributors: record.contributors ?? [],
    approvals: approvalsIn(record, revision.namespace),
    approvalsElsewhere: approvalsElsewhere(record, revision.namespace),
    siblings: sources.ofPackage.filter((other) => other.name !== name),
    nestedWith: sources.nestedWith,
    dependents: sources.dependents,
    refs: {
      main: mainRef(layout),
      draft: draftRef(layout, key),
      proposed: proposedRef(layout, key),
      tag: ref.startsWith('refs/tags/') ? ref : undefined,
      deletionProposed,
      tagFor: (next) => tagRef(layout, key.package, `v${next}`),
      conflictWith: sources.tagConflict,
    },
    mainHead,
    deletionProposed: sources.refAt(deletionProposed),
    merge: sources.merge,
    onMain: sources.onMain,
    foreign: sources.foreign,
  };
}

/** Derives the facts for the evaluation of gates. */
export function gateFactsFrom(
  { gates, conditions }: KptfileFacts,
  lifecycle: Lifecycle,
  record: RevisionRecord,
  inputs: PackageInputs,
): GateFacts {
  const proposed = lifecycle === 'Proposed' ? (record.proposal?.gates ?? []) : [];
  return { gates, proposed, conditions, record, inputs };
}

/**
 * The last proposal, by the time that Sluice recorded. The time of a push is chosen by the pusher, also of a push whose signature names its
 * author.
 */
export function proposalOf({ steps }: RevisionRecord): RevisionState['proposal'] {
  const at = steps.findLastIndex(({ action }) => action === 'propose');
  const step = steps[at];
  if (step === undefined) return undefined;
  return { at: step.at, isUnchanged: !steps.slice(at + 1).some(({ action }) => action === 'push') };
}

/** True if the last step was a rejection: a proposal is there since its branch was restored. */
export function isRejected({ steps }: Pick<RevisionRecord, 'steps'>): boolean {
  return steps.findLast(({ action }) => action !== 'push')?.action === 'reject';
}

/** The user who proposed the current content. A push that moved the branch since was proposed by no person that Sluice knows of. */
export function proposerOf(record: Pick<RevisionRecord, 'steps'>): string | undefined {
  const last = record.steps.at(-1);
  if (last?.action === 'propose') return last.by;
  // A signed push counts as a proposal by the signer.
  return last?.action === 'push' && last.by !== PUSH_ACTOR ? last.by : undefined;
}
