import { beforeEach, expect, test } from 'vitest';
import type { ObjectType, Oid } from '../../src/git/git-repository.ts';
import { readRef } from '../../test/support/git/git-cli.ts';
import { storedEntry, writeCommit, writeObject, writeRef } from '../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

const BRANCH = 'refs/heads/drafts/evil/v1';
const TAG = 'refs/tags/evil/v1';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const write = (type: ObjectType, content: string | Buffer) => writeObject(at.path, type, content);
const tree = (...entries: readonly (readonly [mode: string, name: string, oid: Oid])[]) =>
  write('tree', Buffer.concat(entries.map(([mode, name, oid]) => storedEntry(mode, name, oid))));
const blob = () => write('blob', 'x');
const kptfile = () =>
  ['100644', 'Kptfile', write('blob', 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: evil\n')] as const;
const main = () => readRef(at.path, 'refs/heads/main') ?? '';
const commit = (root: Oid) => writeCommit(at.path, { tree: root, parents: [main()], message: 'odd\n' });
const PERSON = 'a <a@b> 1700000000 +0000';
const tagOf = (type: ObjectType, oid: Oid) =>
  write('tag', `object ${oid}\ntype ${type}\ntag evil/v1\ntagger ${PERSON}\n\nx\n`);

interface OddRef {
  readonly ref: string;
  readonly make: () => Oid;
  /** Of the revision that it shows; undefined for none. */
  readonly problem?: RegExp;
  readonly isNone?: true;
}

/** What any user who may push can push, and servers accept. */
const CASES: Record<string, OddRef> = {
  'an annotated tag of a file': { ref: TAG, make: () => tagOf('blob', blob()), isNone: true },
  'a tag of a tag of a file': { ref: TAG, make: () => tagOf('tag', tagOf('blob', blob())), isNone: true },
  'a tag of a folder': { ref: TAG, make: () => tagOf('tree', tree(kptfile())), isNone: true },
  'a file of mode 100640 beside the package': {
    ref: BRANCH,
    make: () => commit(tree(['100640', 'ODD', blob()], ['40000', 'evil', tree(kptfile())])),
  },
  'a file of mode 100600 in the package': {
    ref: BRANCH,
    make: () => commit(tree(['40000', 'evil', tree(kptfile(), ['100600', 'a', blob()])])),
  },
  'an unsorted root': {
    ref: BRANCH,
    make: () => commit(tree(['100644', 'z', blob()], ['40000', 'evil', tree(kptfile())])),
    problem: /"evil" is not in order. Commit its files again with git$/,
  },
  'an unsorted package': {
    ref: BRANCH,
    make: () => commit(tree(['40000', 'evil', tree(['100644', 'z', blob()], kptfile())])),
    problem: /"Kptfile" is not in order/,
  },
  'an unsorted folder in the package': {
    ref: BRANCH,
    make: () =>
      commit(tree(['40000', 'evil', tree(kptfile(), ['40000', 'a', tree(['100644', 'b', blob()], kptfile())])])),
    problem: /"Kptfile" is not in order/,
  },
  'a commit with endless headers': {
    ref: BRANCH,
    make: () => {
      const root = tree(['40000', 'evil', tree(kptfile())]);
      const head = `tree ${root}\nparent ${main()}\nauthor ${PERSON}\ncommitter ${PERSON}`;
      return write('commit', `${head}\ngpgsig ${'a\n '.repeat(700_000)}b\n\nx\n`);
    },
  },
};

test.each(Object.entries(CASES))('%s stops nothing else', async (_, { ref, make, problem, isNone }) => {
  at.serveBranches();
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.settle();
  writeRef(at.path, ref, make());
  await at.sync();
  await at.mergeAs(1, 'bob');
  await at.sync();
  await at.settle();
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  const shown = at.world.store.list().find((revision) => revision.ref === ref);
  expect(shown?.name).toBe(isNone === true ? undefined : 'apps.evil.v1');
  if (shown === undefined) return;
  const { revision, content, invalid } = await at.world.store.evaluate(shown.name);
  if (problem === undefined) expect(revision.problem).toBeUndefined();
  else expect(revision.problem).toMatch(problem);
  expect(invalid?.code).toBe(problem === undefined ? undefined : 'Unreadable');
  expect(content.files.has('Kptfile')).toBe(problem === undefined);
});
