import type { Condition } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { changedInputs, type PackageInputs } from '../model/content/inputs.ts';
import { PUSH_ACTOR, recordAfterPush, sameCondition, syncVerdicts } from '../model/gates/verdict.ts';
import { type CommitFacts, type FoldedRecord, publishedRecordOf } from '../model/record/commit-message.ts';
import {
  type Contributor,
  emptyRecord,
  type RevisionRecord,
  type Verdict,
  verdictsByType,
  withContributor,
  withStep,
} from '../model/record/record.ts';
import type { Lifecycle } from '../model/revision/revision-state.ts';

/*
 * Computes the record of a revision at its tip, without Git: the last record, and later pushes. The callers read commits and packages;
 * this file derives the record, for the server and for the model that the kernel is tested against.
 */

/**
 * Maximum number of commits that are searched for the one that added a condition. Only a rewritten history adds more at once.
 */
const MAX_WALK = 100;

/** Maximum number of commits of unknown pushers in a record; if there are more, the pushers stay unknown. */
const MAX_UNKNOWN_COMMITS = 100;

/** One commit on the branch of a draft. */
export interface BranchCommit {
  readonly commit: Oid;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly parent: Oid | undefined;
  /** Its message claims so, which any author can write. */
  readonly isBySluice: boolean;
  /** Tree of the package's folder; undefined before the package existed. */
  readonly tree: string | undefined;
  /** Of the Kptfile; undefined if there is none or it cannot be read, then its conditions are not known. */
  readonly conditions: ReadonlyMap<string, Condition> | undefined;
}

/** The pushes since a record was written. */
export interface PushHistory<Commit extends BranchCommit, Source> {
  /** The record before them, without the verdicts of `source`. */
  readonly start: RevisionRecord;
  /** The publication that the pushes began with, where there is no record. */
  readonly source: Source | undefined;
  /** Conditions that were there before; undefined if only the record has them. */
  readonly before: ReadonlyMap<string, Condition> | undefined;
  /** Later commits by pushes, oldest first. */
  readonly pushed: readonly Commit[];
  /** False where the history was rewritten, so that `pushed` is not all that led there. */
  readonly isWhole: boolean;
}

/**
 * Finds the pushes since a record was written. Yields each commit that it needs; the caller passes it in, or undefined where the history
 * is cut off. Without a record the pushes begin with the package, or with the publication (found by its tree) that they branched off;
 * behind a commit of Sluice itself the record was lost, and the issuers of its conditions are not known any more.
 */
export function* findPushes<Commit extends BranchCommit, Source>(
  tip: { readonly commit: Oid; readonly time: number },
  record: RevisionRecord | undefined,
  publicationOf: (tree: string) => Source | undefined,
): Generator<Oid, PushHistory<Commit, Source>, Commit | undefined> {
  const pushed: Commit[] = [];
  let oid: Oid | undefined = tip.commit;
  while (oid !== undefined && pushed.length < MAX_WALK) {
    const found: Commit | undefined = yield oid;
    if (found?.tree === undefined) break;
    const { conditions: before = new Map() } = found;
    if (record !== undefined) {
      if (record.commit === oid)
        return { start: record, source: undefined, before, pushed: pushed.reverse(), isWhole: true };
    } else {
      const source = publicationOf(found.tree);
      if (source !== undefined || found.isBySluice) {
        const createdAt = timestamp((pushed.at(-1) ?? found).time);
        // Anyone can write the trailers of Sluice: the author of this commit is known only with a record.
        const unknown = { name: PUSH_ACTOR, face: 'git', since: createdAt, commit: oid };
        const start = { ...emptyRecord(oid), createdAt, contributors: source === undefined ? [unknown] : [] };
        return { start, source, before, pushed: pushed.reverse(), isWhole: source !== undefined };
      }
    }
    pushed.push(found);
    oid = found.parent;
  }
  if (record === undefined) {
    const start = { ...emptyRecord(tip.commit), createdAt: timestamp(pushed.at(-1)?.time ?? tip.time) };
    const isWhole = pushed.length < MAX_WALK;
    return { start, source: undefined, before: new Map(), pushed: pushed.reverse(), isWhole };
  }
  // The history was rewritten: all commits count as one push.
  return { start: record, source: undefined, before: undefined, pushed: pushed.slice(0, 1), isWhole: false };
}

/** The tip that pushes are replayed for. */
export interface ReplayTip {
  readonly commit: Oid;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly lifecycle: Lifecycle;
  /** Its record was removed, replaced, or signed by a key that is not trusted. */
  readonly isRecordDistrusted: boolean;
}

export interface ReplayOptions {
  /** The types that policies bind to all of the package. */
  readonly bindsContent: (type: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Applies pushes, one after the other, to the record before them. */
export class RecordReplay {
  /**
   * A signature names the author of a commit. The author of a push that takes a branch back to a commit signed long ago is not known: where
   * the history is not whole, signatures identify no pushers.
   */
  readonly isAttributable: boolean;
  readonly #tip: ReplayTip;
  readonly #options: ReplayOptions;
  readonly #start: RevisionRecord;
  #record: RevisionRecord;
  #known: ReadonlyMap<string, Condition> | undefined;
  #pusher = PUSH_ACTOR;

  constructor(
    tip: ReplayTip,
    { start, before, isWhole }: Pick<PushHistory<BranchCommit, unknown>, 'start' | 'before' | 'isWhole'>,
    options: ReplayOptions,
  ) {
    this.#tip = tip;
    this.#options = options;
    this.#start = start;
    this.#record = start;
    this.#known = before;
    this.isAttributable = isWhole && !tip.isRecordDistrusted;
    // The contributors of a draft whose record was lost are not known any more, and any user who may push can claim that Sluice made a commit.
    if (!this.isAttributable) this.#contributeUnknown(tip.time, tip.commit, undefined);
  }

  /**
   * `signer` is the user whose key signed the commit, undefined if there is none; `inputs` is the content of the
   * package.
   */
  apply({ commit, time, conditions }: BranchCommit, signer: string | undefined, inputs: PackageInputs): void {
    const { bindsContent, now } = this.#options;
    const pusher = signer ?? PUSH_ACTOR;
    this.#pusher = pusher;
    const { recordedAt } = this.#start;
    // A commit that is older than the record of this draft was signed for another draft.
    const isForThis = recordedAt !== undefined && time >= Date.parse(recordedAt);
    const context = contextOf(pusher);
    if (signer === undefined) this.#contributeUnknown(time, commit, this.isAttributable ? commit : undefined);
    else this.#contribute(context, time, commit);
    if (conditions === undefined) return;
    this.#record = syncVerdicts(
      this.#record,
      { conditions, known: this.#known, bindsContent },
      inputs,
      isForThis ? context : contextOf(PUSH_ACTOR),
      // A pusher chooses the time of a commit; a verdict must not count for longer by it.
      timestamp(Math.min(time, now)),
    );
    this.#known = conditions;
  }

  /** The record for the tip, after all pushes. */
  end(): RevisionRecord {
    const { commit, time, lifecycle, isRecordDistrusted } = this.#tip;
    let record = this.#record;
    // The later push was proposed by no known user.
    if (record.steps.at(-1)?.action === 'propose')
      record = withStep(record, { action: 'push', by: this.#pusher, face: 'git', at: timestamp(time), commit });
    // The gates that the proposal required went with the record.
    if (isRecordDistrusted && lifecycle === 'Proposed') record = { ...record, proposal: { gates: [], lost: true } };
    return { ...record, commit };
  }

  /** `listed` is the commit where an unknown person is known to have added it, so that the Git host can still report who it was. */
  #contributeUnknown(time: number, tip: Oid, listed: Oid | undefined): void {
    const known = this.#record.contributors ?? [];
    const contributors = withUnknownPusher(known, { since: timestamp(time), tip, commit: listed });
    if (contributors !== known) this.#record = { ...this.#record, contributors: [...contributors] };
  }

  #contribute(context: RequestContext, time: number, commit: Oid): void {
    const known = this.#record.contributors ?? [];
    const contributors = withContributor(known, context, timestamp(time), commit);
    if (contributors.length > known.length) this.#record = { ...this.#record, contributors };
  }
}

/** A publication as its record follows from it. */
export interface PublishedTip {
  readonly commit: Oid;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly facts: CommitFacts;
  /** False for a tag that did not come through the kernel, whose message can have any text. */
  readonly isInBand: boolean;
  /** The record that was written after the publication. */
  readonly record: RevisionRecord | undefined;
  readonly conditions: ReadonlyMap<string, Condition>;
}

export function publishedRecord(tip: PublishedTip, inputs: PackageInputs): RevisionRecord {
  const { commit, time, facts, record, conditions } = tip;
  const folded = publishedRecordOf(facts);
  if (folded !== undefined && tip.isInBand) {
    const kept = record ?? { version: 1, commit };
    // A record after publication continues from the approval commit.
    const steps = 'steps' in kept && kept.steps.length > 0 ? kept.steps : folded.steps;
    return { ...kept, verdicts: [...folded.verdicts], steps: [...steps] };
  }
  const madeBySluice = facts.action !== undefined;
  const pushed = recordAfterPush(record, { commit, madeBySluice, time: timestamp(time) }, conditions, inputs);
  if (folded === undefined) return pushed;
  const known = new Set(record?.verdicts);
  const verdicts = pushed.verdicts.flatMap((one) => (known.has(one) ? one : asClaimed(one, folded, inputs)));
  return { ...pushed, verdicts };
}

/**
 * Restricts a verdict of a push by the record that the publication claims to have: what was issued for other content was not issued again
 * by the merge that carried it here. The record can be forged, so that it opens nothing: the issuer is the push, for the content or for less.
 */
function asClaimed(pushed: Verdict, folded: FoldedRecord, inputs: PackageInputs): readonly Verdict[] {
  const claim = verdictsByType(folded.verdicts).get(pushed.type);
  // The same content had the condition without a verdict: it was not proven before either.
  if (claim === undefined) return folded.content === inputs.content ? [] : [pushed];
  if (!sameCondition(claim, pushed)) return [pushed];
  const isStale = changedInputs(claim.inputs, inputs).length > 0;
  const [at, since] = [earlier(claim.at, pushed.at), earlier(claim.since, pushed.since)];
  return [{ ...pushed, at, since, ...(isStale ? { inputs: claim.inputs } : {}) }];
}

/** Of two times in RFC 3339; the first one can be any text. */
function earlier(claim: string, time: string): string {
  return Date.parse(claim) < Date.parse(time) ? claim : time;
}

/**
 * Adds the push of an unknown user. `commit` is undefined if the pushed commits are unknown; then no report of the host identifies all
 * pushers.
 */
export function withUnknownPusher(
  contributors: readonly Contributor[],
  { since, tip, commit }: { readonly since: string; readonly tip: Oid; readonly commit: Oid | undefined },
): readonly Contributor[] {
  const known = contributors.find(({ name }) => name === PUSH_ACTOR);
  if (known === undefined) {
    const entry = { name: PUSH_ACTOR, face: 'git', since, commit: tip };
    return [...contributors, commit === undefined ? entry : { ...entry, commits: [commit] }];
  }
  const { commits: before, ...rest } = known;
  if (before === undefined || (commit !== undefined && before.includes(commit))) return contributors;
  const isListed = commit !== undefined && before.length < MAX_UNKNOWN_COMMITS;
  const next = isListed ? { ...rest, commits: [...before, commit] } : rest;
  return contributors.map((one) => (one === known ? next : one));
}

function contextOf(name: string): RequestContext {
  return { actor: { name }, face: 'git' };
}
