import { expect, test } from 'vitest';
import { openRepository } from '../../src/git/open/open-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { runVictim } from '../faults/run-victim.ts';
import { describe as describeState, progress, SCENARIO } from '../faults/scenario.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { folderTrust, MAIN_LAYOUT, trustOf } from '../support/trust.ts';

/** Short runs try every n-th place; the long one tries all. */
const STRIDE = process.env.SLUICE_SOAK === 'short' ? 3 : 1;
const RANDOM = process.env.SLUICE_SOAK === 'short' ? 10 : 100;

/**
 * The repository in a process that starts after the victim: with the key and the ledger of the victim's data folder, and the
 * victim's address of the repository. Nothing that the victim signed counts for other keys.
 */
async function openAfter<Result>(
  scratch: Scratch,
  address: string,
  look: (store: RevisionStore) => Promise<Result>,
): Promise<Result> {
  const server = await folderTrust(scratch.folder);
  const git = await openRepository(scratch.path);
  try {
    const { store } = await scratch.open({ git, ...(await trustOf(git, address, MAIN_LAYOUT, server)) });
    try {
      return await look(store);
    } finally {
      await store.close();
    }
  } finally {
    server.ledger.close();
  }
}

/** The invariants after any kill: a state of the scenario, no acknowledged step lost, a consistent Git repository. */
async function check(scratch: Scratch, address: string, acknowledged: number, where: string): Promise<void> {
  const [reached, state] = await openAfter(scratch, address, async (store) => [
    await progress(store),
    await describeState(store),
  ]);
  expect(reached, `${where}: the state is none of the scenario: ${state}`).toBeGreaterThanOrEqual(0);
  expect(reached, `${where}: an acknowledged step is lost`).toBeGreaterThanOrEqual(acknowledged);
  expect(reached, `${where}: a step happened twice or too early`).toBeLessThanOrEqual(acknowledged + 1);
  expect(await scratch.git('fsck', '--strict', '--no-dangling'), where).toBe('');
  const refs = (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n');
  for (const workspace of ['a/v1', 'a/v2', 'b/v1']) {
    const shown = refs.filter((ref) =>
      [`refs/heads/drafts/${workspace}`, `refs/heads/proposed/${workspace}`].includes(ref),
    );
    expect(shown.length, `${where}: ${workspace} is in two states`).toBeLessThanOrEqual(1);
  }
}

test('killed at every numbered place of every operation, on a repository of this machine', async () => {
  await using scratch = await scratchRepository();
  const total = (await runVictim({ folder: scratch.folder, url: scratch.path })).places ?? 0;
  expect(total).toBeGreaterThan(SCENARIO.length * 4);
  let points = 0;
  for (let place = 1; place <= total; place += STRIDE) {
    await using own = await scratchRepository();
    const killed = await runVictim({ folder: own.folder, url: own.path, place });
    expect(killed.places, killed.errors).toBeUndefined();
    await check(own, own.path, killed.acknowledged, `place ${place}`);
    const resumed = await runVictim({ folder: own.folder, url: own.path });
    expect(resumed.places, resumed.errors).toBeDefined();
    await check(own, own.path, SCENARIO.length, `place ${place}, resumed`);
    points += 1;
  }
  console.log(`killed at ${points} of ${total} places`);
});

test('killed at numbered places while the repository is behind a smart-HTTP server', async () => {
  let points = 0;
  for (let place = 1; ; place += STRIDE * 4) {
    await using own = await scratchRepository();
    const server = await startGitServer({ root: own.folder });
    try {
      const url = `${server.url}/packages.git`;
      const killed = await runVictim({ folder: own.folder, url, place });
      if (killed.places !== undefined) break;
      await check(own, url, killed.acknowledged, `place ${place}`);
      const resumed = await runVictim({ folder: own.folder, url });
      expect(resumed.places, resumed.errors).toBeDefined();
      await check(own, url, SCENARIO.length, `place ${place}, resumed`);
      points += 1;
    } finally {
      await server.close();
    }
  }
  expect(points).toBeGreaterThan(5);
  console.log(`killed at ${points} places`);
});

test('killed at random moments', async () => {
  for (let round = 0; round < RANDOM; round++) {
    await using scratch = await scratchRepository();
    for (let life = 0; life < 4; life++) {
      const killed = await runVictim({ folder: scratch.folder, url: scratch.path, after: Math.random() * 60 });
      const reached = await openAfter(scratch, scratch.path, progress);
      expect(reached, `round ${round}, life ${life}`).toBeGreaterThanOrEqual(killed.acknowledged);
    }
    const resumed = await runVictim({ folder: scratch.folder, url: scratch.path });
    expect(resumed.errors).toBe('');
    await check(scratch, scratch.path, SCENARIO.length, `round ${round}`);
  }
});
