import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ledgerPath, openTrust, statementKeyPath, type Trust } from '../../src/app/trust/open-trust.ts';
import { runCli } from '../../src/cli/testing.ts';
import { canonicalJson } from '../../src/foundation/text/canonical-json.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { generateSshKey } from '../../src/git/signing/generate-ssh-key.ts';
import { SqliteTrustLedger } from '../../src/package/trust/sqlite/sqlite-trust-ledger.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { isInstalled } from '../support/git/signing-keys.ts';
import { skipFor } from '../support/skip.ts';

const AT = '2026-01-02T03:04:05Z';
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: db\n';

let folder: string;
let clock: ManualClock;
let trust: Trust;
let world: Fixture;
let bare: string;
let clone: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-tags-'));
  clock = new ManualClock(Date.parse(AT));
  trust = await openTrust(folder, { clock });
  world = await fixture(clock, trust);
  bare = await world.register('apps');
  clone = join(folder, 'clone');
  await world.draft('apps/web/v1');
  await world.publish('apps.web.v1');
  execFileSync('git', ['clone', '--quiet', bare, clone]);
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  trust.ledger.close();
  await rm(folder, { recursive: true, force: true });
});

function git(...words: string[]): string {
  const identity = ['-c', 'user.name=eve', '-c', 'user.email=eve@example.com', '-c', 'commit.gpgSign=false'];
  return execFileSync('git', ['-C', clone, ...identity, ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}
async function push(...refspecs: string[]): Promise<void> {
  git('push', '--quiet', '--force', 'origin', ...refspecs);
  await world.store.repository('apps').refresh();
  await world.store.repository('apps').checked();
}

/** A branch of two commits with the package db, on a base on which main has moved on meanwhile. */
async function branch(): Promise<void> {
  git('switch', '--quiet', '-c', 'topic');
  for (const [count, text] of [KPTFILE, `${KPTFILE}info: {description: second}\n`].entries()) {
    execFileSync('mkdir', ['-p', join(clone, 'db')]);
    await writeFile(join(clone, 'db', 'Kptfile'), text);
    git('add', '.');
    git('commit', '--quiet', '-m', `topic ${count}`);
  }
  git('switch', '--quiet', 'main');
  await writeFile(join(clone, 'README.md'), 'moved on\n');
  git('commit', '--quiet', '--all', '-m', 'moved on');
}

/** How a host makes the commit of a pull request. */
const MERGES: Readonly<Record<string, () => void>> = {
  squash: () => {
    git('merge', '--quiet', '--squash', 'topic');
    git('commit', '--quiet', '-m', 'db (#1)');
  },
  merge: () => void git('merge', '--quiet', '--no-ff', '-m', 'Merge pull request #1', 'topic'),
  rebase: () => {
    git('rebase', '--quiet', 'main', 'topic');
    git('switch', '--quiet', 'main');
    git('merge', '--quiet', '--ff-only', 'topic');
  },
};

/** The statement that a server would sign about the head of main; `change` makes it one about something else. */
function payload(change: (statement: Record<string, unknown>) => object = (statement) => statement): string {
  const text = git('log', '-1', '--format=%(trailers:key=Sluice-Statement,valueonly,separator=)', 'web/v1');
  const [tree, onto, draft] = ['main:db', 'main^', 'topic'].map((name) => git('rev-parse', name));
  return canonicalJson(change({ ...JSON.parse(text), package: 'db', tree, onto, draft }));
}

/** Signs with OpenSSH, and writes the tag with git. */
async function tag(name: string, text: string, { key = statementKeyPath(folder), at = 'main' } = {}): Promise<void> {
  const words = ['-q', '-Y', 'sign', '-f', key, '-n', 'statement@sluice.dev'];
  const armored = execFileSync('ssh-keygen', words, { input: text, encoding: 'utf8' });
  const signature = armored.replace(/-----.*-----|\n/g, '');
  const file = join(folder, 'message');
  await writeFile(file, `Release ${name}\n\nSluice-Statement: ${text}\nSluice-Signature: ${signature}\n`);
  git('tag', '--annotate', '--force', '--file', file, name, at);
}

const reasonOf = (name: string) => world.store.find(name)?.outOfBand?.reason ?? 'in band';

/** What `sluice verify` finds with the public keys alone. */
async function findings(...words: string[]): Promise<string[]> {
  const signers = join(folder, 'allowed-signers');
  const shown = await runCli(['key', 'show', '--allowed-signers', '--data', folder]);
  await writeFile(signers, shown.stdout);
  const { stdout } = await runCli(['verify', bare, '--allowed-signers', signers, ...words, '-o', 'json']);
  const { verified } = JSON.parse(stdout) as { verified: { ref: string; finding?: { reason: string } }[] };
  return verified.flatMap(({ ref, finding }) => (finding === undefined ? [] : `${ref} ${finding.reason}`));
}

const needsKeygen = skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed');

describe('a statement in an annotated tag, where a Git host made the commit', needsKeygen, () => {
  test.each(Object.keys(MERGES))('by %s: counts, here and for sluice verify', async (way) => {
    await branch();
    MERGES[way]?.();
    await tag('db/v1', payload());
    await push('main', 'db/v1');
    expect(reasonOf('apps.db.v1')).toBe('in band');
    expect(world.store.get('apps.db.v1')).toMatchObject({ revision: 1, lifecycle: 'Published' });
    expect(await findings()).toEqual([]);
  });

  test('does not count where it was made for another commit, content, number or repository, or signed by another key', async () => {
    await branch();
    MERGES.squash?.();
    const good = payload();
    const key = join(folder, 'foreign');
    await writeFile(key, generateSshKey('foreign'), { mode: 0o600 });
    const wrong: readonly (readonly [string, () => Promise<void>])[] = [
      [
        'OtherCommit',
        () =>
          tag(
            'db/v1',
            payload((statement) => ({ ...statement, onto: git('rev-parse', 'web/v1') })),
          ),
      ],
      [
        'ContentChanged',
        () =>
          tag(
            'db/v1',
            payload((statement) => ({ ...statement, tree: git('rev-parse', 'web/v1:web') })),
          ),
      ],
      [
        'OtherRevision',
        () =>
          tag(
            'db/v1',
            payload((statement) => ({ ...statement, revision: 2 })),
          ),
      ],
      [
        'OtherRepository',
        () =>
          tag(
            'db/v1',
            payload((statement) => ({ ...statement, repository: 'another' })),
          ),
      ],
      ['UntrustedKey', () => tag('db/v1', good, { key })],
    ];
    for (const [reason, make] of wrong) {
      await make();
      await push('main', 'db/v1');
      expect(reasonOf('apps.db.v1')).toBe(reason);
      expect(await findings()).toEqual([`refs/tags/db/v1 ${reason}`]);
    }
    await tag('db/v1', good);
    await push('main', 'db/v1');
    expect(reasonOf('apps.db.v1')).toBe('in band');
  });

  test('does not count on a commit that is not on the main branch', async () => {
    await branch();
    MERGES.squash?.();
    const [base, merged] = [git('rev-parse', 'main^'), git('rev-parse', 'main')];
    await tag('db/v1', payload());
    await push(`${base}:refs/heads/main`, 'db/v1');
    expect(reasonOf('apps.db.v1')).toBe('NotOnMain');
    expect(merged).not.toBe(base);
  });
});

describe('a tag that was set back to the publication that had its number before', () => {
  beforeEach(async () => {
    for (const action of ['propose-deletion', 'delete'] as const)
      await world.store.update('apps.web.v1', { action }, ANNA);
    clock.advance(1000);
    execFileSync('git', ['-C', bare, 'update-ref', 'refs/heads/drafts/web/v2', 'main']);
    await world.store.repository('apps').refresh();
    await world.publish('apps.web.v2');
    expect(await findings()).toEqual([]);
    await push('+refs/tags/web/v1:refs/tags/web/v1');
  });

  test('is found by sluice verify, with the public keys alone: the main branch has the later one', async () => {
    expect(reasonOf('apps.web.v1')).toBe('RolledBack');
    expect(await findings()).toEqual(['refs/tags/web/v1 RolledBack']);
  });

  test('is found by the ledger too where the main branch was rewritten, without a change in the data folder', async () => {
    const first = git('rev-parse', 'web/v1');
    await push(`${first}:refs/heads/main`);
    expect(await findings()).toEqual([]);
    const copy = join(folder, 'copy');
    mkdirSync(copy);
    for (const name of readdirSync(folder).filter((one) => one.startsWith('trust.sqlite')))
      copyFileSync(join(folder, name), join(copy, name));
    // As a server leaves it that has ended.
    SqliteTrustLedger.open({ path: ledgerPath(copy) }).close();
    expect(readdirSync(copy)).toEqual(['trust.sqlite']);
    for (const data of [folder, copy]) {
      const before = readdirSync(data).sort();
      expect(await findings('--data', data)).toEqual(['refs/tags/web/v1 RolledBack']);
      expect(readdirSync(data).sort()).toEqual(before);
    }
  });
});
