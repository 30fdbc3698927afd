import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { dataFolder } from '../src/app/data/data-folder.ts';
import { applyConfig, readConfig } from '../src/app/session/apply-config.ts';
import { Session } from '../src/app/session/session.ts';
import { ledgerPath } from '../src/app/trust/open-trust.ts';
import { runCli } from '../src/cli/testing.ts';
import { SluiceError } from '../src/foundation/sluice-error.ts';
import { SqliteAttributedPushes } from '../src/package/trust/sqlite/sqlite-attributed-pushes.ts';
import { STATEMENT_VERSION } from '../src/package/trust/statement/statement.ts';

/** The checked-in data folders, a folder for each format. */
export const DATA_FOLDERS: string = fileURLToPath(new URL('../test/fixtures/data-folders/', import.meta.url));

/** What identifies the format of each part of a data folder: its version, and a digest of its tables. */
export type Formats = Readonly<Record<'objects' | 'trust' | 'pushes' | 'index' | 'statements' | 'key', string>>;

const OBJECTS = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: reviewed, labels: {team: shop}}
spec:
  selector: {repositories: [apps]}
  requiredGates: [{conditionType: example.com/Reviewed}]
---
apiVersion: v1
kind: Secret
metadata: {name: apps-auth}
stringData: {username: test, password: only-for-tests}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {name: vpc}
spec: {prefixes: [{prefix: 10.0.0.0/16}]}
`;

/** Texts for users, which a later version may change. */
const WORDING: ReadonlySet<string> = new Set(['explanation', 'message', 'next', 'alternatives', 'hint']);

const IDENTITY = ['AUTHOR', 'COMMITTER'].flatMap((role) => [
  [`GIT_${role}_NAME`, 'eve'],
  [`GIT_${role}_EMAIL`, 'eve@example.com'],
]);

/** The environment of a command on a data folder, as the user anna. */
export const environmentOf = (data: string): NodeJS.ProcessEnv => ({ SLUICE_DATA: data, SLUICE_USER: 'anna' });

/**
 * Makes a data folder with something in each of its parts: objects, a published and a proposed revision and a draft that a user of plain git
 * changed, statements, and the key that signed them.
 */
export async function writeDataFolder(data: string): Promise<void> {
  const run = async (...words: string[]) => {
    const { code, stderr } = await runCli(words, environmentOf(data));
    if (code !== 0) throw new SluiceError('Internal', `sluice ${words.join(' ')} failed: ${stderr}`);
  };
  await run('repo', 'reg', 'sluice:///apps.git', '--create-branch');
  const config = join(data, 'config.yaml');
  await writeFile(config, OBJECTS);
  const session = await Session.open({ folder: dataFolder(data), actor: { name: 'anna' }, write: true });
  try {
    await applyConfig(session, await readConfig([config]));
  } finally {
    await session.close();
    rmSync(config);
  }
  for (const name of ['web', 'db']) {
    await run('rpkg', 'init', name, '--repository', 'apps', '--workspace', 'v1');
    await run('rpkg', 'condition', 'set', `apps.${name}.v1`, 'example.com/Reviewed', 'True', '--as', 'carol');
    await run('rpkg', 'propose', `apps.${name}.v1`);
  }
  await run('rpkg', 'approve', 'apps.web.v1', '--as', 'bob');
  await run('rpkg', 'copy', 'apps.web.v1', '--workspace', 'v2');
  const push = pushTo('refs/heads/drafts/web/v2', repositoryOf(data));
  // As the webhook of a Git host reports it.
  const pushes = new SqliteAttributedPushes(pushesPath(data));
  pushes.note({ ...placeOf(data), ...push, user: 'eve-at-host', provider: 'gitea', at: '2026-11-01T10:00:00Z' });
  pushes.noteLook({ ...placeOf(data), ref: push.ref, commit: push.after });
  pushes.close();
  // Reads the push, and saves the index.
  await run('rpkg', 'get');
}

const pushesPath = (data: string) => join(data, 'pushes.sqlite');

/** How reports on pushes name the repository. */
function placeOf(data: string): { readonly repository: string; readonly registration: string } {
  const ledger = new DatabaseSync(ledgerPath(data), { readOnly: true });
  try {
    return {
      repository: String(ledger.prepare('SELECT id FROM repositories').get()?.id),
      registration: 'default/apps',
    };
  } finally {
    ledger.close();
  }
}

/** The repository of a data folder of `writeDataFolder`. */
export function repositoryOf(data: string): string {
  return join(data, 'repositories', 'apps.git');
}

function pushTo(ref: string, repository: string): { ref: string; before: string; after: string } {
  const git = (...words: string[]) =>
    execFileSync('git', ['--git-dir', repository, ...words], {
      encoding: 'utf8',
      env: { ...process.env, ...Object.fromEntries(IDENTITY) },
    }).trim();
  const before = git('rev-parse', ref);
  const after = git('commit-tree', '-p', before, '-m', 'Look at it again', `${before}^{tree}`);
  git('update-ref', ref, after, before);
  return { ref, before, after };
}

/** What the commands report about a data folder, without wording. Versions of objects end with the command. */
export async function describeDataFolder(data: string): Promise<unknown> {
  const read = async (...words: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await runCli([...words, '-o', 'json'], environmentOf(data));
    if (code !== 0) throw new SluiceError('Internal', `sluice ${words.join(' ')} failed: ${stderr}`);
    return JSON.parse(stdout, (key, value: unknown) => {
      if (key === 'resourceVersion' || WORDING.has(key)) return undefined;
      return typeof value === 'string' ? value.replaceAll(data, '<data>') : value;
    });
  };
  const names = ['apps.web.v1', 'apps.web.v2', 'apps.db.v1'];
  const explanations: unknown[] = [];
  for (const name of names) explanations.push(await read('why', name));
  const histories: unknown[] = [];
  for (const name of names) histories.push(await read('rpkg', 'history', name));
  const pushes = new SqliteAttributedPushes(pushesPath(data));
  const ref = 'refs/heads/drafts/web/v2';
  const reported = pushes.latest({ ...placeOf(data), ref });
  const firstSync = pushes.firstLook({ ...placeOf(data), commit: reported[0]?.after ?? '' });
  pushes.close();
  return {
    reported,
    firstSync,
    revisions: await read('rpkg', 'get'),
    keys: await read('key', 'show'),
    explanations,
    histories,
  };
}

/** Reads the formats from the files of a data folder that no process has open. */
export async function formatsOf(data: string): Promise<Formats> {
  const cache = join(data, 'cache');
  const [index = ''] = readdirSync(cache).filter((name) => name.endsWith('.ndjson'));
  const [header = ''] = (await readFile(join(cache, index), 'utf8')).split('\n', 1);
  const key = await readFile(join(data, 'keys', 'statement-key'), 'utf8');
  return {
    objects: tablesOf(dataFolder(data).database),
    trust: tablesOf(ledgerPath(data)),
    pushes: tablesOf(pushesPath(data)),
    index: header.slice(0, header.indexOf('[')).trim(),
    statements: STATEMENT_VERSION,
    key: key.split('\n', 1)[0] ?? '',
  };
}

function tablesOf(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
    const tables = database.prepare('SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name').all();
    const digest = createHash('sha256').update(JSON.stringify(tables)).digest('hex');
    return `version ${version}, tables ${digest.slice(0, 16)}`;
  } finally {
    database.close();
  }
}

/** Puts a checked-in data folder at a path. */
export async function restoreDataFolder(fixture: string, data: string): Promise<void> {
  await mkdir(join(data, 'repositories'), { recursive: true, mode: 0o700 });
  execFileSync('cp', ['-R', `${join(fixture, 'data')}/.`, data]);
  // Git keeps no modes but that of programs.
  execFileSync('chmod', ['-R', 'go-rwx', data]);
  const repository = repositoryOf(data);
  execFileSync('git', ['clone', '--quiet', '--mirror', join(fixture, 'apps.bundle'), repository]);
  execFileSync('git', ['--git-dir', repository, 'config', '--remove-section', 'remote.origin']);
}

/** Reads a JSON file of a checked-in data folder. */
export function readFixture(fixture: string, name: string): unknown {
  return JSON.parse(readFileSync(join(fixture, name), 'utf8'));
}
