import type { Oid } from '../../../git/git-repository.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import type { MergedProposal, MergeFacts, PackageOnMain } from '../../model/revision/revision-state.ts';
import { deletedContentScope } from '../../trust/ledger/trust-ledger.ts';
import { isEdited } from '../main-edit.ts';
import { inputsOf, PATH, treeOf } from './package-data.ts';
import { type ListedRevision, MAIN } from './places.ts';
import type { WorldView } from './record-at-tip.ts';

/** As `readOnMain` reads it in Git. */
export function onMainOf(
  world: WorldView,
  revision: ListedRevision,
  { base }: RevisionRecord,
): PackageOnMain | undefined {
  const head = world.store.refs.get(MAIN);
  const { commit, lifecycle } = revision;
  if (head === undefined || (lifecycle !== 'Draft' && lifecycle !== 'Proposed')) return undefined;
  const treeAt = (oid: Oid | undefined) => {
    const data = oid === undefined ? undefined : world.data(oid);
    return data && treeOf(data);
  };
  const latest = latestOf(world)?.commit;
  const deleted = world.records.trust.mark(deletedContentScope(PATH))?.digest;
  const known = {
    ...{ tree: treeAt(head), proposed: treeAt(commit), atBase: treeAt(base?.commit) },
    ...{ derivedFrom: base === undefined ? [] : [base.tree], published: treeAt(latest), deleted },
  };
  if (!isEdited(known) && (base !== undefined || known.tree !== undefined)) return known;
  const common = world.store.mergeBase(commit, head);
  if (common === undefined || common === base?.commit) return known;
  return { ...known, atBase: treeAt(common), derivedFrom: [...known.derivedFrom, treeAt(common)] };
}

/** How the Git host merged a proposal; undefined if it did not. */
export function mergeOf(
  world: WorldView,
  { commit }: ListedRevision,
  { approvals = [] }: RevisionRecord,
  merged: MergedProposal | undefined,
): MergeFacts | undefined {
  const made = merged && world.store.commits.get(merged.commit);
  if (merged === undefined || made === undefined) return undefined;
  const [proposed, head] = [world.data(commit), world.store.refs.get(MAIN)];
  const trees = new Set(proposed === undefined ? [] : [treeOf(proposed)]);
  for (const { mergeOf, content, tree } of approvals)
    if (mergeOf !== undefined && content === inputsOf(proposed).content) trees.add(tree);
  const latest = latestOf(world);
  const isOnLine = (commit: Oid, of: Oid | undefined) => of !== undefined && world.store.isOnLine(commit, of);
  const isBelow =
    latest !== undefined &&
    latest.commit !== merged.commit &&
    isOnLine(latest.commit, head) &&
    isOnLine(merged.commit, latest.commit);
  return {
    isOnMain: isOnLine(merged.commit, head),
    onto: made.parents[0],
    hasProposedTree: made.data !== undefined && proposed !== undefined && trees.has(treeOf(made.data)),
    ...(latest !== undefined && isBelow ? { later: { name: latest.workspace, revision: latest.revision } } : {}),
  };
}

/** The published revision with the highest number. */
function latestOf(world: WorldView): ListedRevision | undefined {
  const tags = world.list().filter(({ tag, revision }) => tag !== undefined && revision > 0);
  return tags.sort((a, b) => b.revision - a.revision)[0];
}
