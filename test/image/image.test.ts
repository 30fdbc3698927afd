import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { git, initBare } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { skipFor } from '../support/skip.ts';
import { type BuiltImage, buildImage, debianBase } from './support/build-image.ts';
import { Container, runContainer } from './support/container.ts';
import { type DebianRoot, makeDebianRoot, whyNoRoot } from './support/debian-root.ts';
import { parseDockerfile } from './support/dockerfile.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8');
const run = promisify(execFile);

describe('the Dockerfile, executed in a Debian root', skipFor(whyNoRoot()), () => {
  let folder: string;
  let base: DebianRoot;
  let image: BuiltImage;
  let again: BuiltImage;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-image-'));
    const [, suite = ''] = /debian:(\w+)-slim/.exec(dockerfile) ?? [];
    base = await makeDebianRoot(suite, folder);
    if (base.missing !== undefined) return;
    const built = ['first', 'second'].map(async (name) => {
      await mkdir(join(folder, name));
      return await buildImage(checkout, join(folder, name), debianBase(base.path));
    });
    [image, again] = (await Promise.all(built)) as [BuiltImage, BuiltImage];
  });
  beforeEach(({ skip }) => {
    if (base.missing !== undefined) skip(base.missing);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('starts as a user without rights, from a read-only root and without a shell', async () => {
    const { stdout } = await runContainer({ image }, 'version', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ node: process.versions.node, git: expect.stringMatching(/^2\./) });
    const { stdout: user } = await runContainer({ image, entrypoint: [] }, 'id');
    expect(user).toBe('uid=65532(sluice) gid=65532(sluice) groups=65532(sluice)\n');
    const shell = runContainer({ image, entrypoint: [] }, 'sh', '-c', 'true');
    await expect(shell).rejects.toMatchObject({ stderr: expect.stringContaining('Permission denied') });
    const writable = '/ -xdev -type d ( -not -readable -prune -o -writable -print )'.split(' ');
    const { stdout: folders } = await runContainer({ image, entrypoint: ['find'] }, ...writable);
    expect(folders).toBe('/tmp\n/var/cache/sluice\n');
  });

  test('runs the quick start', async () => {
    const { stdout } = await runContainer({ image }, 'demo');
    expect(stdout).toContain('Published');
  });

  test('serves a repository of a Git host over HTTP, and ends with code 0 at SIGTERM', async () => {
    const temporary = await mkdtemp(join(folder, 'tmp-'));
    await chown(temporary, 65532, 65532);
    initBare(join(folder, 'apps.git'));
    const server = await startGitServer({ root: folder });
    onTestFinished(() => server.close());
    const environment = { SLUICE_USER: 'anna', KUBECONFIG: '/tmp/data/kubeconfig' };
    const options = { image, temporary, environment };
    await using up = new Container(options, 'up', '--data', '/tmp/data', '--allow-git-host', '127.0.0.1');
    await expect.poll(() => up.output).toContain('kubectl --kubeconfig');
    await runContainer(options, 'repo', 'reg', `${server.url}/apps.git`, '--create-branch');
    await runContainer(options, 'rpkg', 'init', 'web', '--repository', 'apps', '--workspace', 'v1');
    expect(git(join(folder, 'apps.git'), ['show', 'drafts/web/v1:web/Kptfile'])).toContain('name: web');
    expect(await up.stop()).toBe(0);
  });

  test('a second build has the same files', async () => {
    const [first, second] = await Promise.all([filesOf(image.root), filesOf(again.root)]);
    expect(first.length).toBeGreaterThan(1000);
    expect(second).toEqual(first);
  });

  test('contains every file of the npm package', async () => {
    // Without the build, whose files only the image has.
    const words = ['pack', '--dry-run', '--json', '--ignore-scripts'];
    const { stdout } = await run('npm', words, { cwd: checkout, maxBuffer: 1 << 26 });
    const [packed] = Object.values(JSON.parse(stdout) as object);
    const { files } = packedSchema.parse(packed);
    const wanted = files.map(({ path }) => path).filter((path) => !path.startsWith('dist/'));
    expect(wanted.length).toBeGreaterThan(50);
    expect(wanted.filter((path) => !existsSync(join(image.root, 'app', path)))).toEqual([]);
  });

  test('contains Node.js without npm, and exactly the npm packages that npm run sbom lists', async () => {
    expect(readdirSync(join(image.root, 'usr/local/bin')).sort()).toEqual(['node', 'sluice']);
    const { stdout } = await run('npm', ['run', '--silent', 'sbom'], { cwd: checkout, maxBuffer: 1 << 26 });
    const { components } = sbomSchema.parse(JSON.parse(stdout));
    const lock = readFileSync(join(image.root, 'app/node_modules/.package-lock.json'), 'utf8');
    const installed = Object.entries(lockSchema.parse(JSON.parse(lock)).packages);
    const names = installed.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`);
    expect([...new Set(components.map(({ 'bom-ref': name }) => name))].sort()).toEqual([...new Set(names)].sort());
  });
});

const sbomSchema = z.object({
  bomFormat: z.literal('CycloneDX'),
  components: z.array(z.object({ 'bom-ref': z.string(), purl: z.string() })),
});
const packedSchema = z.object({ files: z.array(z.object({ path: z.string() })) });
const lockSchema = z.object({ packages: z.record(z.string(), z.object({ version: z.string() })) });

/** Kind, mode, owner, target and content of every file. Times are left out: a container engine sets them from SOURCE_DATE_EPOCH. */
async function filesOf(root: string): Promise<string[]> {
  const script =
    "find . -xdev -printf '%P %y %m %U:%G %l\\n' && find . -xdev -type f -print0 | xargs -0 -n 1000 sha256sum";
  const { stdout } = await run('sh', ['-c', script], { cwd: root, maxBuffer: 1 << 28 });
  return stdout.split('\n').sort();
}

test('every instruction of the Dockerfile is one that the test executes', () => {
  const [build, final] = parseDockerfile(dockerfile);
  expect([build?.base, final?.base]).toEqual(['node:24-trixie-slim', 'debian:trixie-slim']);
  expect(() => parseDockerfile('FROM debian\nADD x /')).toThrow('does not support');
});
