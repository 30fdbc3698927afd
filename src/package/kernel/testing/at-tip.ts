import type { Condition } from '../../../../kptfile-schema/index.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { emptyRecord, type RevisionRecord, withContributor, withStep } from '../../model/record.ts';
import { PUSH_ACTOR, recordAfterPush, syncVerdicts } from '../../model/verdict.ts';
import { inputsOf, type PackageData, treeOf } from './package-data.ts';
import { type Listed, recordOf } from './places.ts';
import type { Records } from './records.ts';
import type { Refs } from './refs.ts';

const PUSH = { actor: { name: PUSH_ACTOR }, face: 'git' } as const;

/** What is asked of the world. */
interface Surroundings {
  readonly records: Records;
  readonly store: Refs;
  /** RFC 3339. */
  readonly at: string;
  list(): readonly Listed[];
  data(commit: Oid): PackageData | undefined;
}

/** The record of a revision as it stands for its tip: record-at-tip.ts without Git. */
export function atTip(world: Surroundings, revision: Listed): RevisionRecord {
  const { workspace, commit, tag, lifecycle } = revision;
  if (tag !== undefined || revision.revision !== 0) return published(world, commit, tag);
  const { record, distrust } = world.records.read(workspace, world.store.refs.get(recordOf(workspace)));
  if (record?.commit === commit) return record;
  const { start, isCopy, before, pushed } = pushesOf(world, commit, record);
  let next = start;
  let known = before;
  const contribute = (oid: Oid) => {
    next = { ...next, contributors: withContributor(next.contributors ?? [], PUSH, world.at, oid) };
  };
  if (distrust !== undefined || (record === undefined && !isCopy)) contribute(commit);
  for (const oid of pushed) {
    contribute(oid);
    const data = world.data(oid);
    const conditions = conditionsOf(data);
    const at = world.store.commits.get(oid)?.time ?? world.at;
    next = syncVerdicts(next, { conditions, ...(known === undefined ? {} : { known }) }, inputsOf(data), PUSH, at);
    known = conditions;
  }
  if (next.steps.at(-1)?.action === 'propose') {
    next = withStep(next, { action: 'push', by: PUSH_ACTOR, face: 'git', at: world.at, commit });
  }
  if (distrust !== undefined && lifecycle === 'Proposed') next = { ...next, proposal: { gates: [], lost: true } };
  return { ...next, commit };
}

function published(world: Surroundings, commit: Oid, tag: string | undefined): RevisionRecord {
  const facts = world.store.factsAt(commit);
  const folded = facts.statement?.statement.record;
  if (tag !== undefined && folded !== undefined && world.store.isInBand(tag, commit)) {
    return { ...emptyRecord(commit), verdicts: [...folded.verdicts], steps: [...folded.steps] };
  }
  const data = world.data(commit);
  const tip = { commit, madeBySluice: facts.action !== undefined, time: world.at };
  return recordAfterPush(undefined, tip, conditionsOf(data), inputsOf(data));
}

interface Pushes {
  readonly start: RevisionRecord;
  /** It holds what was published. */
  readonly isCopy: boolean;
  readonly before: ReadonlyMap<string, Condition> | undefined;
  /** Oldest first. */
  readonly pushed: readonly Oid[];
}

function pushesOf(world: Surroundings, tip: Oid, record: RevisionRecord | undefined): Pushes {
  const pushed: Oid[] = [];
  for (let oid: Oid | undefined = tip; oid !== undefined; ) {
    const commit = world.store.commits.get(oid);
    if (commit?.data === undefined) break;
    const before = conditionsOf(commit.data);
    if (record?.commit === oid) return { start: record, isCopy: false, before, pushed: pushed.reverse() };
    if (record === undefined) {
      const tree = treeOf(commit.data);
      const source = inBand(world).find(({ commit: other }) => {
        const data = world.data(other);
        return data !== undefined && treeOf(data) === tree;
      });
      if (source !== undefined || commit.action !== undefined) {
        const verdicts = source === undefined ? [] : published(world, source.commit, source.tag).verdicts;
        const start = { ...emptyRecord(oid), verdicts };
        return { start, isCopy: source !== undefined, before, pushed: pushed.reverse() };
      }
    }
    pushed.push(oid);
    oid = commit.parents[0];
  }
  if (record === undefined) {
    return { start: emptyRecord(tip), isCopy: false, before: new Map(), pushed: pushed.reverse() };
  }
  return { start: record, isCopy: false, before: undefined, pushed: pushed.slice(0, 1) };
}

function inBand(world: Surroundings): Listed[] {
  return world.list().filter(({ tag, commit, revision }) => {
    return revision > 0 && tag !== undefined && world.store.isInBand(tag, commit);
  });
}

function conditionsOf(data: PackageData | undefined): ReadonlyMap<string, Condition> {
  return data?.conditions ?? new Map();
}
