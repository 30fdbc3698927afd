import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type CliResult, runCli } from '../../../src/cli/testing.ts';
import { Up } from '../../support/up.ts';

/** Pushes give no conditions of the type `tested`, so that all of them come from records. */
const POLICY = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata:
  name: tests
  namespace: default
spec:
  pushDenied: [tested]
`;

const IDENTITY = {
  GIT_AUTHOR_NAME: 'eve',
  GIT_AUTHOR_EMAIL: 'eve@example.com',
  GIT_COMMITTER_NAME: 'eve',
  GIT_COMMITTER_EMAIL: 'eve@example.com',
};

const flawSchema = z.object({ reason: z.string(), message: z.string() });
const revisionSchema = z.object({
  spec: z.object({ lifecycle: z.string() }),
  status: z.object({ outOfBand: flawSchema.optional(), recordDistrust: flawSchema.optional() }),
});

/** A running server on a bare repository, users with its CLI, and eve, who may push to the repository and nothing else. */
export class TrustWorld {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-attack-'));
  readonly data = join(this.folder, 'data');
  up: Up;

  readonly #words: readonly string[];

  private constructor(words: readonly string[]) {
    this.#words = words;
    writeFileSync(join(this.folder, 'policy.yaml'), POLICY);
    this.up = this.#start();
  }

  #start(): Up {
    return new Up(this.data, '--listen', '127.0.0.1:0', '--config', join(this.folder, 'policy.yaml'), ...this.#words);
  }

  /** `words`: further options of the server. */
  static async start(...words: string[]): Promise<TrustWorld> {
    const world = new TrustWorld(words);
    await world.up.said(/Serving|kubectl --kubeconfig/);
    return world;
  }

  async restart(between: () => void): Promise<void> {
    await this.up.end('SIGTERM');
    between();
    this.up = this.#start();
    await this.up.said(/Serving|kubectl --kubeconfig/);
  }

  async end(): Promise<void> {
    await this.up.end('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(name: string): string {
    return join(this.folder, `${name}.git`);
  }

  /** Makes a bare repository with a main branch, registers it, and gives eve a clone. */
  async register(name: string): Promise<void> {
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', this.path(name)]);
    await this.ok('repo', 'reg', this.path(name), '--name', name, '--create-branch');
    await this.ok('repo', 'sync', name);
    execFileSync('git', ['clone', '--quiet', this.path(name), this.clone(name)]);
  }

  clone(name: string): string {
    return join(this.folder, `eve-${name}`);
  }

  run(...words: string[]): Promise<CliResult> {
    return runCli(words, { SLUICE_DATA: this.data, SLUICE_USER: 'anna' });
  }

  async ok(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words);
    if (code !== 0) throw new Error(`sluice ${words.join(' ')}: ${code}\n${stderr}`);
    return stdout;
  }

  /** What a user reads of a command that is refused. */
  async refused(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words);
    if (code === 0) throw new Error(`sluice ${words.join(' ')} succeeded\n${stdout}`);
    return stderr;
  }

  why(name: string): Promise<string> {
    return this.ok('why', name);
  }

  async revision(name: string): Promise<z.infer<typeof revisionSchema>> {
    return revisionSchema.parse(JSON.parse(await this.ok('rpkg', 'get', name, '-o', 'json')));
  }

  /** Why a revision is out of band, as its object says; undefined if it is not. */
  async outOfBand(name: string): Promise<string | undefined> {
    const { outOfBand } = (await this.revision(name)).status;
    return outOfBand && `${outOfBand.reason}: ${outOfBand.message}`;
  }

  /** What the server tells in its log. */
  async said(pattern: RegExp): Promise<void> {
    await this.up.said(pattern);
  }

  /** Makes a draft with the readiness gate `tested`, through Sluice. */
  async gated(repository: string, name: string, workspace = 'v1'): Promise<string> {
    const revision = `${repository}.${name}.${workspace}`;
    await this.ok('rpkg', 'init', name, '--repository', repository, '--workspace', workspace);
    const folder = join(this.folder, `pulled-${revision}`);
    await this.ok('rpkg', 'pull', revision, folder);
    writeFileSync(join(folder, 'Kptfile'), kptfile(name));
    await this.ok('rpkg', 'push', revision, folder);
    return revision;
  }

  async publish(repository: string, name: string, workspace = 'v1'): Promise<string> {
    await this.ok('rpkg', 'init', name, '--repository', repository, '--workspace', workspace);
    const revision = `${repository}.${name}.${workspace}`;
    await this.ok('rpkg', 'propose', revision);
    await this.ok('rpkg', 'approve', revision, '--as', 'bob');
    return revision;
  }

  /** Waits until something holds. */
  async until(holds: () => boolean | Promise<boolean>): Promise<void> {
    const end = Date.now() + 30_000;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`it did not come to pass:\n${this.up.output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  has(repository: string, ref: string): boolean {
    return this.git(repository, 'ls-remote', 'origin', ref) !== '';
  }

  /** Eve runs git in her clone. */
  git(repository: string, ...words: string[]): string {
    return execFileSync('git', ['-C', this.clone(repository), ...words], {
      encoding: 'utf8',
      env: { ...process.env, ...IDENTITY },
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  }

  /** Eve has all refs of a repository as they are now, under `refs/all/`. */
  fetch(repository: string): void {
    this.git(repository, 'fetch', '--quiet', '--prune', 'origin', '+refs/*:refs/all/*');
  }

  /** Eve pushes, and the server looks. */
  async push(repository: string, ...refspecs: string[]): Promise<void> {
    this.git(repository, 'push', '--quiet', '--force', 'origin', ...refspecs);
    await this.ok('repo', 'sync', repository);
  }

  /** Eve writes a commit. */
  commit(repository: string, message: string, tree: string, ...parents: string[]): string {
    const onTopOf = parents.flatMap((parent) => ['-p', parent]);
    return this.git(repository, 'commit-tree', ...onTopOf, '-m', message, tree);
  }

  message(repository: string, ref: string): string {
    return this.git(repository, 'log', '-1', '--format=%B', ref);
  }

  /** Eve writes a commit on a branch that gives files of a package another content. */
  edit(repository: string, base: string, files: Readonly<Record<string, string>>, message = 'an edit'): string {
    const clone = this.clone(repository);
    const env = { ...process.env, ...IDENTITY, GIT_INDEX_FILE: join(this.folder, 'eve-index') };
    const git = (words: string[], input = '') =>
      execFileSync('git', ['-C', clone, ...words], { encoding: 'utf8', env, input }).trim();
    git(['read-tree', base]);
    for (const [path, text] of Object.entries(files)) {
      const blob = git(['hash-object', '-w', '--stdin'], text);
      git(['update-index', '--add', '--cacheinfo', `100644,${blob},${path}`]);
    }
    return this.commit(repository, message, git(['write-tree']), base);
  }
}

/** A Kptfile with the readiness gate `tested`, and its condition. */
export function kptfile(name: string, status?: 'True' | 'False'): string {
  const condition =
    status === undefined ? '' : `status:\n  conditions:\n    - type: tested\n      status: "${status}"\n`;
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\ninfo:\n  readinessGates:\n    - conditionType: tested\n${condition}`;
}
