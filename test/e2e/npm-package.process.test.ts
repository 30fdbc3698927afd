import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { olderNode } from '../support/older-node.ts';
import { skipFor } from '../support/skip.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const MAX_PACKED_BYTES = 3 * 1024 * 1024;
const MAX_FILE_BYTES = 256 * 1024;
/** Everything that the package may contain. */
const WANTED = [
  /^(?:package\.json|README\.md|LICENSE|bin\/sluice\.js)$/,
  /^dist\/(?:src|controllers|kptfile-schema)\/.*\.(?:js|d\.ts|json)$/,
  /^docs\/[\w-]+\.(?:md|svg)$/,
  /^deploy\/crds\/[\w.]+\.yaml$/,
  /^controllers\/(?:[\w-]+\/)*README\.md$/,
  /^examples\/(?:quickstart|gitops|fleet)\//,
];
/** What must not be in the build: tests, their support, sources. */
const UNWANTED = /\.test\.|\.conformance\.|(?:^|\/)testing\b|(?:^|\/)fixtures?\/|(?<!\.d)\.ts$|\.map$/;

const run = promisify(execFile);
const packedSchema = z.object({
  filename: z.string(),
  size: z.number(),
  unpackedSize: z.number(),
  files: z.array(z.object({ path: z.string(), size: z.number() })),
});
type Packed = z.infer<typeof packedSchema>;

let folder: string;
let app: string;
/** Milliseconds; an installation takes ten seconds. */
const INSTALL_MS = 120_000;
const INSTALL_ATTEMPTS = 4;

let packed: Packed;
let environment: NodeJS.ProcessEnv;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-package-'));
  app = join(folder, 'app');
  await mkdir(app);
  environment = installedEnvironment();
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: checkout });
  // The scripts of the package may print before npm does. npm 12 prints an object by name, earlier versions a list.
  const [listed] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as object);
  packed = packedSchema.parse(listed);
  const words = ['install', '--omit=optional', '--prefer-offline', '--no-audit', '--no-fund'];
  // npm waits for ever for a registry that stops in the middle of a response. What it has downloaded is in its cache.
  words.push('--fetch-timeout=20000', '--fetch-retries=10', '--fetch-retry-mintimeout=1000');
  const options = { cwd: app, env: environment, timeout: INSTALL_MS, killSignal: 'SIGKILL' } as const;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run('npm', [...words, join(folder, packed.filename)], options);
      break;
    } catch (error) {
      const isLate = (error as { readonly killed?: boolean }).killed === true;
      if (!isLate || attempt === INSTALL_ATTEMPTS) throw error;
    }
  }
}, 600_000);
afterEach(() => {
  for (const { pid, exitCode } of running) if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL');
  running.clear();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The environment of a user: without what npm and vitest set for scripts of the checkout, and nothing of the checkout on PATH. */
function installedEnvironment(): NodeJS.ProcessEnv {
  // The authorities of the machine stay: npm reads its global configuration beside the Node.js that it runs on.
  const dropped = /^(?:npm_|VITEST|NODE_(?!EXTRA_CA_CERTS$)|SLUICE_|KUBECONFIG)/i;
  const kept = Object.entries(process.env).filter(([name]) => !dropped.test(name));
  // Under the name that the shebang of the program looks for.
  symlinkSync(process.execPath, join(folder, 'node'));
  const path = (process.env.PATH ?? '').split(':').filter((part) => !part.includes('node_modules'));
  return { ...Object.fromEntries(kept), PATH: [folder, ...path].join(':'), SLUICE_USER: 'anna', NO_COLOR: '1' };
}

/** Without npx, which takes longer than the command. */
const sluice = (...words: string[]) =>
  run(join(app, 'node_modules/.bin/sluice'), words, { cwd: app, env: environment });

/** A server of the installed package; npx and the shell that it starts end with its process group. */
async function up(...words: string[]): Promise<() => Promise<void>> {
  const child = spawn('npx', ['--no', 'sluice', 'up', ...words], { cwd: app, env: environment, detached: true });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
  await expect.poll(() => [child.exitCode, output]).toEqual([null, expect.stringContaining('--kubeconfig')]);
  return async () => {
    const closed = once(child, 'close');
    process.kill(-Number(child.pid), 'SIGTERM');
    await closed;
    running.delete(child);
  };
}

test('the package contains what the installed program needs, and nothing else', () => {
  const paths = packed.files.map(({ path }) => path);
  const [packedKiB, unpackedKiB] = [packed.size, packed.unpackedSize].map((size) => Math.round(size / 1024));
  console.info(`npm package: ${paths.length} files, ${packedKiB} KiB packed, ${unpackedKiB} KiB unpacked`);
  expect(paths.filter((path) => !WANTED.some((pattern) => pattern.test(path)) || UNWANTED.test(path))).toEqual([]);
  expect(packed.files.filter(({ size }) => size > MAX_FILE_BYTES)).toEqual([]);
  expect(packed.size).toBeLessThan(MAX_PACKED_BYTES);
  const needed = [
    ...[
      'dist/src/cli/main.js',
      'dist/src/function/worker/pipeline-worker.js',
      'dist/src/function/lint/lint-thread.js',
      'dist/src/package/model/krm/krm-thread.js',
    ],
    ...['bash', 'zsh', 'fish'].map((shell) => `dist/src/cli/completion/${shell}.js`),
    ...['bin/sluice.js', 'LICENSE', 'dist/src/function/schema/kubernetes-types.json', 'docs/install.md'],
    ...globSync('deploy/crds/*.yaml', { cwd: checkout }),
    ...globSync('examples/quickstart/*.yaml', { cwd: checkout }),
  ];
  expect(needed.filter((path) => !paths.includes(path))).toEqual([]);
});

test('the pages that messages and help name are in the package', () => {
  const root = join(app, 'node_modules/sluice');
  const named = new Set(
    globSync('dist/**/*.js', { cwd: root }).flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/\bdocs\/[\w-]+\.md\b/g)].map(([path]) => path),
    ),
  );
  expect(named.size).toBeGreaterThan(2);
  expect([...named].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('npx sluice up serves packages that other commands make, without the optional packages', async () => {
  expect(existsSync(join(app, 'node_modules/openpgp'))).toBe(false);
  execFileSync('git', ['init', '--quiet', '--bare', join(folder, 'apps.git')]);
  const stop = await up();
  await sluice('repo', 'reg', join(folder, 'apps.git'), '--create-branch');
  await sluice('rpkg', 'init', 'web', '--repository', 'apps', '--workspace', 'v1');
  const { stdout, stderr } = await sluice('rpkg', 'get', '-v');
  expect(stdout).toMatch(/^apps\.web\.v1 .*Draft/m);
  expect(stderr).toContain('using https://127.0.0.1:');
  await stop();
});

test('the quick start runs: its examples, function workers and reader threads are there', async () => {
  const { stdout } = await sluice('demo');
  expect(stdout).toContain('Published');
});

test('completion calls the program that is on the path', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await sluice('completion', shell);
    expect(stdout).toContain("'command' 'sluice'");
    expect(stdout).not.toContain(app);
  }
});

test('a resolver outside of the package has types and runs', async () => {
  const text = `import type { Resolver } from 'sluice/resolver';
const resolver: Resolver = { name: 'own', claims: ['example.com/Own'], applies: () => false, resolve: () => ({ conditions: [] }) };
export default resolver;
`;
  await writeFile(join(app, 'own.ts'), text);
  await writeFile(join(app, 'wrong.ts'), text.replace("name: 'own'", 'name: 1'));
  const types = ['--types', 'node', '--typeRoots', join(checkout, 'node_modules/@types')];
  const compiler = join(checkout, 'node_modules/typescript/bin/tsc');
  const words = [compiler, '--noEmit', '--strict', '--module', 'nodenext', ...types, 'own.ts', 'wrong.ts'];
  const compiled = await run(process.execPath, words, { cwd: app, env: environment }).catch((error: unknown) => error);
  expect((compiled as { stdout: string }).stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^wrong\.ts.* TS2322: /),
  ]);
  const { stdout } = await sluice('up', '--data', 'other', '--until-idle', '--resolver', './own.ts');
  expect(stdout).toContain('No revision waits.');
});

const older = olderNode();
test(
  'an older Node.js uses the one that npm installed beside the package, else it reports how to install one',
  skipFor(older === undefined && 'no Node.js before 24 is installed'),
  async () => {
    const program = join(app, 'node_modules/sluice/bin/sluice.js');
    const version = () => run(older ?? '', [program, 'version', '-o', 'json'], { cwd: app, env: environment });
    await expect(version()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('npm install node@24') });
    await mkdir(join(app, 'node_modules/node/bin'), { recursive: true });
    symlinkSync(process.execPath, join(app, 'node_modules/node/bin/node'));
    expect(JSON.parse((await version()).stdout)).toMatchObject({ node: process.versions.node });
    await rm(join(app, 'node_modules/node'), { recursive: true });
  },
);
