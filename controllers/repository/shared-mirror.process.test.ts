import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { fixture } from '../../test/support/fixture.ts';
import { fsck, refsOf } from '../../test/support/git/git-cli.ts';
import { startGitServer } from '../../test/support/git/git-server.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';

const { gates } = vi.hoisted(() => ({ gates: { look: undefined as (() => Promise<unknown>) | undefined } }));
/** A large mirror is read for long. */
vi.mock('../../src/git/maintenance/damaged-files.ts', async (original) => {
  const real = await original<typeof import('../../src/git/maintenance/damaged-files.ts')>();
  return {
    ...real,
    findDamage: async (...options: Parameters<typeof real.findDamage>) => {
      const found = await real.findDamage(...options);
      await gates.look?.();
      return found;
    },
  };
});

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

test('two registrations of one repository repair its damaged mirror at once, and no revision vanishes', async () => {
  await using world = await fixture(new ManualClock());
  const controller = repositoryControllerOf(world, { remoteInterval: 1000 });
  const origin = await world.bare('apps');
  await world.push(origin, { 'one/Kptfile': KPTFILE, 'one/a.yaml': 'a: 1\n', 'two/Kptfile': KPTFILE });
  const server = await startGitServer({ root: dirname(origin) });
  onTestFinished(() => server.close());
  for (const namespace of ['default', 'other']) {
    const metadata = { name: 'apps', namespace };
    await world.client.create(repositoryKind, { metadata, spec: { git: { repo: `${server.url}/apps.git` } } });
    await controller.reconcile(metadata, CONTEXT);
  }
  const [one, other] = world.store.repositories();
  await one?.git.maintain();
  const git = join(world.folder, 'data/git');
  const mirrors = readdirSync(git);
  expect(mirrors).toHaveLength(1);
  const mirror = join(git, mirrors[0] ?? '');
  const refs = refsOf(mirror);
  const rows = world.store.list();
  expect(rows).toHaveLength(4);
  for (const name of readdirSync(join(mirror, 'objects/pack')).filter((file) => file.endsWith('.pack'))) {
    const file = join(mirror, 'objects/pack', name);
    chmodSync(file, 0o644);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0x55, 12, bytes.length - 20));
  }
  const changes: unknown[] = [];
  onTestFinished(world.store.subscribe((news) => changes.push(...news)));
  const { promise: looked, resolve: look } = Promise.withResolvers<void>();
  const { promise: goOn, resolve } = Promise.withResolvers<void>();
  gates.look = () => {
    look();
    return goOn;
  };
  const first = one?.repair();
  await looked;
  gates.look = undefined;
  const second = other?.repair();
  // It may do what it can before the first one goes on.
  await Promise.race([second, setTimeout(500)]);
  resolve();
  const repaired = await Promise.all([first, second]);
  for (const repair of repaired) expect(repair?.damaged.join()).toContain('.pack');
  expect(changes).toEqual([]);
  expect(refsOf(mirror)).toEqual(refs);
  fsck(mirror);
});
