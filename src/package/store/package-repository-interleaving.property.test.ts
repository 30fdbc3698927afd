import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { anna, robot, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { isSluiceError, type SluiceError } from '../../foundation/sluice-error.ts';
import { initRepository } from '../../git/open/open-repository.ts';
import { isPlaceholder, type PackageRevision } from '../model/revision/package-revision.ts';
import { ACTIONS } from '../model/revision/revision-state.ts';
import type { PackageRepository } from './package-repository.ts';
import type { RevisionStore } from './revision-store.ts';

const PACKAGES = ['a', 'b', 'b/c'] as const;
const WORKSPACES = ['v1', 'v2'] as const;

const request = fc.record({
  process: fc.nat(1),
  what: fc.constantFrom('create', 'create', 'copy', 'edit', 'give', 'label', 'sync', ...ACTIONS, ...ACTIONS),
  package: fc.constantFrom(...PACKAGES),
  workspace: fc.constantFrom(...WORKSPACES, 'main'),
  value: fc.nat(2),
});
type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

/** What a request may come to when others are faster, or when it makes no sense any more. */
const EXPECTED = ['Busy', 'Conflict', 'Refused', 'NotFound', 'AlreadyExists', 'InvalidInput'];

type Process = { store: RevisionStore; repository: PackageRepository };

for (const [kind, open] of [
  ['on the repository itself', (scratch: Scratch) => scratch.open()],
  ['through mirrors', openMirror],
] as const) {
  test(`two processes ${kind}: after concurrent requests both have the state of Git`, async () => {
    const batches = fc.array(fc.array(request, { minLength: 1, maxLength: 8 }), { minLength: 3, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(batches, async (rounds) => {
        await using scratch = await scratchRepository();
        const processes = [await open(scratch, 0), await open(scratch, 1)];
        for (const round of rounds) {
          await Promise.all(round.map((one) => ask(processes[one.process] as Process, one)));
          for (const { repository } of processes) await repository.sync();
          const fresh = await scratch.open();
          for (const { store } of processes) expect(comparable(store.list())).toEqual(comparable(fresh.store.list()));
        }
        expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
      }),
      { numRuns: runs(5, 2) },
    );
  });
}

async function openMirror(scratch: Scratch, number: number): Promise<Process> {
  const git = await initRepository(join(scratch.folder, `mirror-${number}.git`));
  const opened = await scratch.open({ git, remote: { url: `file://${scratch.path}` } });
  await opened.repository.sync();
  return opened;
}

async function ask({ store, repository }: Process, one: Request): Promise<void> {
  const { what, workspace, value } = one;
  const name = `packages.${one.package.replace('/', '.')}.${workspace}`;
  const source = store.list({ package: one.package }).find(({ latest }) => latest);
  try {
    if (what === 'sync') await repository.sync();
    else if (what === 'create')
      await store.create('packages', { package: one.package, workspace, source: { type: 'init' } }, anna);
    else if (what === 'copy') {
      const copy = { type: 'copy', source: source?.name ?? name } as const;
      await store.create('packages', { package: one.package, workspace, source: copy }, anna);
    } else if (what === 'edit')
      await store.change(name, { files: new Map([['a.yaml', Buffer.from(`a: ${value}\n`)]]) }, robot);
    else if (what === 'give') await store.change(name, { conditions: [{ type: 'x', status: 'True' }] }, anna);
    else if (what === 'label') await store.change(name, { metadata: { labels: { a: `${value}` } } }, anna);
    else await store.update(name, { action: what }, anna);
  } catch (error) {
    if (!EXPECTED.some((code) => isSluiceError(error, code as SluiceError['code']))) throw error;
  }
}

function comparable(rows: readonly PackageRevision[]): unknown[] {
  return rows.map((row) => {
    if (!isPlaceholder(row)) return row;
    const { refOid: _oid, commit: _commit, tip, ...rest } = row;
    return { ...rest, tree: tip.tree };
  });
}
