import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTrust, type Trust } from '../../src/app/trust/open-trust.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const kptfile = (name: string) =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\ninfo:\n  readinessGates:\n    - conditionType: tested\n`;
const DRAFT = 'refs/heads/drafts/web/v1';
const RECORD = 'refs/sluice/records/web/v1';

let folder: string;
let clock: ManualClock;
let trust: Trust;
let world: Fixture;
let bare: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-old-ledger-'));
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  await mkdir(join(folder, 'data'));
  trust = await openTrust(join(folder, 'data'), { clock });
  world = await fixture(clock, trust);
  bare = await world.register('apps');
  for (const name of ['web', 'db']) {
    clock.advance(1000);
    await world.draft(`apps/${name}/v1`, { Kptfile: kptfile(name) });
  }
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  trust.ledger.close();
  await rm(folder, { recursive: true, force: true });
});

const git = (...words: string[]) => execFileSync('git', ['-C', bare, ...words], { encoding: 'utf8' }).trim();
const give = (name: string, status: 'True' | 'False', where = world) =>
  where.store.change(`apps.${name}.v1`, { conditions: [{ type: 'tested', status }] }, ANNA);
const gate = async (name: string, where: Fixture) =>
  (await where.store.evaluate(`apps.${name}.v1`)).gates.map(({ state }) => state).join();
/** Eve keeps the draft with its record, and sets both back later. */
const seen = () => [RECORD, DRAFT].map((ref) => [ref, git('rev-parse', ref)] as const);
const setBack = (refs: ReturnType<typeof seen>) => {
  for (const [ref, oid] of refs) git('update-ref', ref, oid);
};
/** The data folder as it is now, to be put back later. */
const keep = () => cp(join(folder, 'data'), join(folder, 'kept'), { recursive: true });

/** The server once more, with the data folder that was kept. */
async function restored(check: (other: Fixture) => Promise<void>): Promise<void> {
  const old = await openTrust(join(folder, 'kept'), { clock });
  const other = await fixture(clock, old);
  try {
    clock.advance(60_000);
    await other.register('apps', { repo: bare });
    await check(other);
  } finally {
    await other[Symbol.asyncDispose]();
    old.ledger.close();
  }
}

test('a withdrawn verdict is not restored by an older ledger', async () => {
  await keep();
  await give('web', 'True');
  const given = seen();
  await give('web', 'False');
  setBack(given);
  await restored(async (other) => {
    expect(await gate('web', other)).toBe('Unproven');
    expect(other.store.repository('apps').index.flaws).toContainEqual(
      expect.stringContaining('the trust ledger is older than the repository'),
    );
    await give('web', 'True', other);
    expect(await gate('web', other)).toBe('Open');
  });
});

test('nor is one of another revision, if the ledger is detected as old', async () => {
  await give('web', 'True');
  const given = seen();
  await keep();
  await give('web', 'False');
  await give('db', 'True');
  setBack(given);
  await restored(async (other) => {
    expect(await gate('web', other)).toBe('Unproven');
    expect(await gate('db', other)).toBe('Unproven');
    // Affirming proves one, and what is written from now on is known again.
    await give('db', 'True', other);
    expect(await gate('db', other)).toBe('Open');
    expect(await gate('web', other)).toBe('Unproven');
  });
});

test('a write whose mark was not noted before the process ended does not make the ledger an old one', async () => {
  await give('web', 'True');
  const { raise } = trust.ledger;
  const marks = () => JSON.stringify(trust.ledger.mark({ ...scope(), package: 'db', workspace: 'v1' }));
  const scope = () => ({ repository: world.store.repository('apps').trust.repository, package: '', workspace: '' });
  const before = marks();
  // What is announced is noted, and what is carried out is not.
  trust.ledger.raise = (entries, options) => {
    if (entries.some(({ scope: { workspace } }) => !workspace.startsWith('signed/'))) throw new Error('killed');
    raise.call(trust.ledger, entries, options);
  };
  await expect(give('db', 'True')).rejects.toThrow();
  trust.ledger.raise = raise;
  expect(marks()).toBe(before);
  await keep();
  await restored(async (other) => {
    expect(await gate('db', other)).toBe('Open');
    expect(await gate('web', other)).toBe('Open');
    expect(other.store.repository('apps').index.flaws).toEqual([]);
  });
});
