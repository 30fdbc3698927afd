import type { Oid } from '../../../git/git-repository.ts';
import { bindsContent, type EffectivePolicy } from '../../model/policy/policy.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import { type BranchCommit, findPushes, publishedRecord, RecordReplay } from '../replay-record.ts';
import { inputsOf, type PackageData, treeOf } from './package-data.ts';
import { type ListedRevision, recordRefOf } from './places.ts';
import type { Records } from './records.ts';
import type { Refs } from './refs.ts';

/** The parts of the world that its readers need. */
export interface WorldView {
  readonly records: Records;
  readonly store: Refs;
  readonly policy: EffectivePolicy;
  /** Milliseconds since the epoch. */
  readonly now: number;
  list(): readonly ListedRevision[];
  data(commit: Oid): PackageData | undefined;
}

/** The record of a revision as it stands for its tip: reads the world where plan/records/record-at-tip.ts reads Git, and decides as it does. */
export function recordAtTip(world: WorldView, revision: ListedRevision): RevisionRecord {
  const { workspace, commit, tag, lifecycle } = revision;
  if (tag !== undefined || revision.revision !== 0) return published(world, commit, tag);
  const { record, distrust } = world.records.read(workspace, world.store.refs.get(recordRefOf(workspace)));
  if (record?.commit === commit) return record;
  const time = timeOf(world, commit);
  const history = pushesOf(world, { commit, time }, record);
  const tip = { commit, time, lifecycle, isRecordDistrusted: distrust !== undefined };
  const replay = new RecordReplay(tip, history, {
    bindsContent: (type) => bindsContent(world.policy, type),
    now: world.now,
  });
  for (const push of history.pushed) replay.apply(push, undefined, inputsOf(world.data(push.commit)));
  return replay.end();
}

function published(world: WorldView, commit: Oid, tag: string | undefined): RevisionRecord {
  const data = world.data(commit);
  const conditions = data?.conditions ?? new Map();
  const isInBand = tag !== undefined && world.store.isInBand(tag, commit);
  const facts = world.store.factsAt(commit);
  const tip = { commit, time: timeOf(world, commit), facts, isInBand, record: undefined, conditions };
  return publishedRecord(tip, inputsOf(data));
}

function pushesOf(world: WorldView, tip: { commit: Oid; time: number }, record: RevisionRecord | undefined) {
  const publications = world.list().filter(({ tag, commit, revision }) => {
    return revision > 0 && tag !== undefined && world.store.isInBand(tag, commit);
  });
  const publicationOf = (tree: string) => publications.find(({ commit }) => treeAt(world, commit) === tree);
  const pushes = findPushes<BranchCommit, ListedRevision>(tip, record, publicationOf);
  let next = pushes.next();
  while (next.done !== true) next = pushes.next(commitAt(world, next.value));
  const history = next.value;
  const { start, source } = history;
  if (source === undefined) return history;
  return { ...history, start: { ...start, verdicts: published(world, source.commit, source.tag).verdicts } };
}

function commitAt(world: WorldView, oid: Oid): BranchCommit | undefined {
  const commit = world.store.commits.get(oid);
  if (commit === undefined) return undefined;
  return {
    commit: oid,
    time: timeOf(world, oid),
    parent: commit.parents[0],
    isBySluice: commit.action !== undefined,
    tree: treeAt(world, oid),
    conditions: commit.data?.conditions,
  };
}

function treeAt(world: WorldView, oid: Oid): string | undefined {
  const data = world.data(oid);
  return data && treeOf(data);
}

function timeOf({ store, now }: WorldView, oid: Oid): number {
  const time = store.commits.get(oid)?.time;
  return time === undefined ? now : Date.parse(time);
}
