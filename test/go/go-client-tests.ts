import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from 'vitest';
import { type CliFixture, type CliResult, cliFixture } from '../../src/cli/testing.ts';
import type { KubeApi } from '../support/api/kube-api.ts';
import { buildGoProgram, CLIENTS, type GoProgram, PORCHCTL } from '../support/go-program.ts';
import { skipFor } from '../support/skip.ts';

/** The first compilation of both programs takes about three minutes on two idle processors. */
const BUILDS_WITHIN = 900_000;
const RUNS_WITHIN = 180_000;

/** A server that the programs are tested with. */
export interface GoClientServer {
  /** A user who may do everything and has a token. */
  readonly kubeconfig: string;
  readonly api: KubeApi;
  /** The URL of a Git server with the repositories of the fixture, if the server uses none on its own disk. */
  readonly gitUrl?: string;
  /** Lines of the log about what the server did wrong. */
  ownFailures(): readonly string[];
  stop(): Promise<unknown>;
}

export interface GoClientOptions {
  /** Why the server cannot be started here; empty if it can. */
  readonly missing?: string;
  /** `fixture` has a data folder and Git repositories. */
  readonly start: (fixture: CliFixture) => Promise<GoClientServer>;
  /** Arguments of the program with client-go. */
  readonly words?: readonly string[];
}

/** Declares the tests of client-go, controller-runtime and porchctl with a server. */
export function testGoClients(options: GoClientOptions): void {
  const { missing = '' } = options;
  describe('programs in Go', skipFor(missing !== '' && missing), () => declareTests(options));
}

function declareTests({ start, words = [] }: GoClientOptions): void {
  let fixture: CliFixture;
  let up: GoClientServer;
  beforeAll(async () => {
    fixture = await cliFixture();
    up = await start(fixture);
  });
  afterAll(async () => {
    await up?.stop();
    await fixture?.[Symbol.asyncDispose]();
  });

  /** How the server reaches a repository of the fixture. */
  function addressOf(path: string, scheme = ''): string {
    return up.gitUrl === undefined ? `${scheme}${path}` : `${up.gitUrl}/${basename(path)}`;
  }

  /** The path of a program; skips the test if it cannot be built. */
  function need({ skip }: TestContext, { path, missing }: GoProgram): string {
    return path ?? skip(missing);
  }

  function run(program: string, args: readonly string[]): Promise<CliResult> {
    // A home folder of its own, since clients cache the discovery of a server there.
    const env = { ...process.env, KUBECONFIG: up.kubeconfig, HOME: fixture.folder };
    const options = { env, timeout: RUNS_WITHIN, maxBuffer: 1 << 26 };
    return new Promise((resolve) => {
      execFile(program, args, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      });
    });
  }

  describe('client-go and controller-runtime', () => {
    let clients: GoProgram;
    beforeAll(async () => {
      clients = await buildGoProgram(CLIENTS);
    }, BUILDS_WITHIN);

    test('perform all operations of the Go program', { timeout: RUNS_WITHIN }, async (context) => {
      const program = need(context, clients);
      const repository = addressOf(fixture.bare('clients.git'));
      const { code, stdout, stderr } = await run(program, ['-kubeconfig', up.kubeconfig, '-git', repository, ...words]);
      expect(stdout.split('\n').filter((line) => line !== '' && !line.startsWith('ok '))).toEqual([]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.split('\n').length).toBeGreaterThan(40);
      expect(up.ownFailures()).toEqual([]);
    });
  });

  describe('porchctl', () => {
    let built: GoProgram;
    beforeAll(async () => {
      built = await buildGoProgram(PORCHCTL);
      if (built.path === undefined) return;
      for (const name of ['blueprints', 'site']) fixture.bare(`${name}.git`);
      const auth = ['--repo-basic-username', 'anna', '--repo-basic-password', 'secret'];
      await works('repo', 'reg', addressOf(join(fixture.folder, 'blueprints.git')), '--name', 'blueprints', ...auth);
      await works(
        'repo',
        'reg',
        addressOf(join(fixture.folder, 'site.git'), 'file://'),
        '--name',
        'site',
        '--deployment',
      );
      const areReady = async () => expect((await porchctl('repo', 'get')).stdout).toMatch(/True.*\n.*True/);
      await vi.waitFor(areReady, { timeout: 60_000, interval: 200 });
    }, BUILDS_WITHIN);

    const porchctl = (...args: string[]) => run(built.path ?? '', [...args, '--namespace', 'default']);

    /** Runs it successfully without output on stderr, and returns its output. */
    async function works(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await porchctl(...args);
      expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' });
      return stdout;
    }

    /** Runs it with an expected error, and returns the message. */
    async function fails(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await porchctl(...args);
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 1, stdout: '' });
      return stderr;
    }

    /** A failure of a verb that takes several names. */
    const failureOf = (name: string, error: string) => `${name} failed (${error})\nError: errors:\n  ${error} \n`;

    async function publish(...names: string[]): Promise<void> {
      expect(await works('rpkg', 'propose', ...names)).toBe(names.map((name) => `${name} proposed\n`).join(''));
      expect(await works('rpkg', 'approve', ...names)).toBe(names.map((name) => `${name} approved\n`).join(''));
    }

    const init = (name: string) =>
      works('rpkg', 'init', name, '--repository', 'blueprints', '--workspace', 'v1', '--description', 'a package');

    test('registers repositories, with a Secret, and shows them', async (context) => {
      need(context, built);
      const [head, blueprints, site] = (await works('repo', 'get')).split('\n');
      expect(head?.split(/\s{2,}/)).toEqual(
        'NAME, TYPE, CONTENT, SYNC SCHEDULE, DEPLOYMENT, READY, ADDRESS, AGE'.split(', '),
      );
      expect(blueprints).toMatch(/^blueprints +git +Package +True +(http:\/)?\/.*blueprints\.git /);
      expect(site).toMatch(/^site +git +Package +true +True +(http|file):\/\/.*site\.git /);
      const secret = await up.api.get('/api/v1/namespaces/default/secrets/blueprints-auth');
      expect(secret.body).toMatchObject({ type: 'kubernetes.io/basic-auth', data: { username: 'YW5uYQ==' } });
      expect(await fails('repo', 'reg', 'file:///x.git', '--name', 'site')).toBe(
        'Error: repositories.config.porch.kpt.dev "site" already exists \n',
      );
    });

    test('creates a package, edits and publishes it', async (context) => {
      need(context, built);
      expect(await init('web')).toBe('blueprints.web.v1 created\n');
      expect(await fails('rpkg', 'init', 'web', '--repository', 'blueprints', '--workspace', 'v2')).toContain(
        '`init` cannot create a new revision for package "web" that already exists in repo "blueprints"; make subsequent revisions using `copy`',
      );
      const folder = join(fixture.folder, 'pulled');
      await works('rpkg', 'pull', 'blueprints.web.v1', folder);
      expect(await readFile(join(folder, 'Kptfile'), 'utf8')).toMatch(
        /status:\n +conditions:\n +- type: Rendered\n +status: "True"\n +reason: RenderSuccess\n$/,
      );
      expect(await readFile(join(folder, 'package-context.yaml'), 'utf8')).toContain('data:\n  name: example\n');
      await writeFile(join(folder, 'a.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n');
      expect(await works('rpkg', 'push', 'blueprints.web.v1', folder)).toBe('blueprints.web.v1 pushed\n');
      // The pulled metadata still has the version before the push.
      expect(await fails('rpkg', 'push', 'blueprints.web.v1', folder)).toBe(
        'Error: Internal error occurred: Operation cannot be fulfilled on packagerevisionresources.porch.kpt.dev "blueprints.web.v1": the object has been modified; please apply your changes to the latest version and try again \n',
      );
      expect(await works('rpkg', 'pull', 'blueprints.web.v1')).toContain('kind: ConfigMap\n  metadata:\n    name: a\n');
      expect(await fails('rpkg', 'approve', 'blueprints.web.v1')).toBe(
        failureOf('blueprints.web.v1', 'cannot change approval from Draft to Published'),
      );
      expect(await works('rpkg', 'propose', 'blueprints.web.v1')).toBe('blueprints.web.v1 proposed\n');
      expect(await works('rpkg', 'reject', 'blueprints.web.v1')).toBe(
        'blueprints.web.v1 no longer proposed for approval\n',
      );
      await publish('blueprints.web.v1');
      const table = (await works('rpkg', 'get', '--name', 'web')).split('\n').map((line) => line.split(/\s{2,}/));
      expect(table).toEqual([
        'NAME, PACKAGE, WORKSPACENAME, REVISION, LATEST, LIFECYCLE, REPOSITORY'.split(', '),
        'blueprints.web.main, web, main, -1, false, Published, blueprints'.split(', '),
        'blueprints.web.v1, web, v1, 1, true, Published, blueprints'.split(', '),
        [''],
      ]);
    });

    test('reports after a push the results of the functions of the package', async (context) => {
      need(context, built);
      await init('labelled');
      const folder = join(fixture.folder, 'labelled');
      await works('rpkg', 'pull', 'blueprints.labelled.v1', folder);
      const kptfile = await readFile(join(folder, 'Kptfile'), 'utf8');
      const pipeline =
        'pipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap:\n        tier: web\n  validators:\n    - image: kubeconform:v0.1.1\n';
      await writeFile(join(folder, 'Kptfile'), kptfile.replace('status:', `${pipeline}status:`));
      await writeFile(join(folder, 'a.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n');
      const pushed = await porchctl('rpkg', 'push', 'blueprints.labelled.v1', folder);
      expect(pushed.stdout).toBe('blueprints.labelled.v1 pushed\n');
      const catalog = 'ghcr.io/kptdev/krm-functions-catalog';
      expect(pushed.stderr.split('\n').filter((line) => line.startsWith('['))).toEqual([
        `[RUNNING] "${catalog}/set-labels:v0.2.0" `,
        `[PASS] "${catalog}/set-labels:v0.2.0"`,
        `[RUNNING] "${catalog}/kubeconform:v0.1.1" `,
        `[PASS] "${catalog}/kubeconform:v0.1.1"`,
      ]);
      expect(await works('rpkg', 'pull', 'blueprints.labelled.v1')).toContain('    labels:\n      tier: web\n');

      const broken = join(fixture.folder, 'broken');
      await works('rpkg', 'pull', 'blueprints.labelled.v1', broken);
      await writeFile(join(broken, 'a.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: 5\n');
      const refused = await porchctl('rpkg', 'push', 'blueprints.labelled.v1', broken);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(
        "error rendering package in kpt function pipeline. Package NOT pushed to remote. Fix locally (until 'kpt fn render' succeeds) and retry. Details: ",
      );
      expect(refused.stderr).toMatch(/kubeconform[\s\S]*data/);
      expect(await works('rpkg', 'pull', 'blueprints.labelled.v1')).not.toContain('data: 5');
      await up.api.patch('/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/blueprints.labelled.v1', {
        metadata: { annotations: { 'porch.kpt.dev/push-on-render-failure': 'true' } },
      });
      const again = join(fixture.folder, 'broken-again');
      await works('rpkg', 'pull', 'blueprints.labelled.v1', again);
      await writeFile(join(again, 'a.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: 5\n');
      expect((await porchctl('rpkg', 'push', 'blueprints.labelled.v1', again)).stderr).toContain(
        'Package pushed to remote despite render failure. Details: ',
      );
      expect(await works('rpkg', 'pull', 'blueprints.labelled.v1')).toContain('data: 5');
      expect(await fails('rpkg', 'propose', 'blueprints.labelled.v1')).toContain('gate Rendered is closed');
    });

    test('copies, clones, upgrades and deletes', async (context) => {
      need(context, built);
      await init('base');
      await publish('blueprints.base.v1');
      const clone = ['rpkg', 'clone', 'blueprints.base.v1', 'shop', '--repository', 'site', '--workspace'];
      expect(await works(...clone, 'w1')).toBe('site.shop.w1 created\n');
      expect(await works('rpkg', 'pull', 'site.shop.w1')).toContain('    name: shop\n');
      expect(await fails(...clone, 'w2')).toContain(
        '`clone` cannot create a new revision for package "shop" that already exists in repo "site"; make subsequent revisions using `copy`',
      );
      expect(await works('rpkg', 'copy', 'blueprints.base.v1', '--workspace', 'v2')).toBe(
        'blueprints.base.v2 created\n',
      );
      expect(await fails('rpkg', 'copy', 'blueprints.base.v1', '--workspace', 'v2')).toContain(
        'package revision workspaceNames must be unique; package revision with name base in repo blueprints with workspaceName v2 already exists',
      );
      await publish('blueprints.base.v2', 'site.shop.w1');
      expect(await works('rpkg', 'upgrade', '--discover', 'upstream')).toMatch(/site\.shop\.w1 +blueprints +v2\n/);
      expect(await works('rpkg', 'upgrade', 'site.shop.w1', '--revision', '2', '--workspace', 'w2')).toBe(
        'site.shop.w1 upgraded to site.shop.w2\n',
      );
      expect(await works('rpkg', 'get', 'site.shop.w2', '-o', 'jsonpath={.status.upstreamLock.git.ref}')).toBe(
        'base/v2',
      );

      const forbidden = (name: string) => `packagerevisions.porch.kpt.dev "${name}" is forbidden: `;
      const published =
        "published PackageRevisions must be proposed for deletion by setting spec.lifecycle to 'DeletionProposed' prior to deletion";
      expect(await fails('rpkg', 'del', 'site.shop.w1')).toBe(
        failureOf('site.shop.w1', forbidden('site.shop.w1') + published),
      );
      expect(await works('rpkg', 'propose-delete', 'blueprints.base.v1')).toBe(
        'blueprints.base.v1 proposed for deletion\n',
      );
      const referenced =
        'cannot delete package revision, it is referenced as upstream by: site.shop.main, site.shop.w1';
      expect(await fails('rpkg', 'del', 'blueprints.base.v1')).toBe(
        failureOf('blueprints.base.v1', forbidden('blueprints.base.v1') + referenced),
      );
      expect(await works('rpkg', 'reject', 'blueprints.base.v1')).toBe(
        'blueprints.base.v1 no longer proposed for deletion\n',
      );
      await works('rpkg', 'propose-delete', 'site.shop.w1');
      expect(await works('rpkg', 'del', 'site.shop.w1', 'site.shop.w2')).toBe(
        'site.shop.w1 deleted\nsite.shop.w2 deleted\n',
      );
      const missing = 'packagerevisions.porch.kpt.dev "site.shop.w1" not found';
      expect(await fails('rpkg', 'del', 'site.shop.w1')).toBe(failureOf('site.shop.w1', missing));
    });

    test('shows a closed gate', async (context) => {
      need(context, built);
      await init('gated');
      const path = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/blueprints.gated.v1';
      const gates = { spec: { readinessGates: [{ conditionType: 'example.com/Checked' }] } };
      expect((await up.api.patch(path, gates)).status).toBe(200);
      expect(await fails('rpkg', 'propose', 'blueprints.gated.v1')).toBe(
        failureOf('blueprints.gated.v1', 'readiness conditions not met'),
      );
    });

    test('unregisters a repository, and its Secret if it is not kept', async (context) => {
      need(context, built);
      fixture.bare('short.git');
      const auth = ['--repo-basic-username', 'anna', '--repo-basic-password', 'secret'];
      await works('repo', 'reg', addressOf(join(fixture.folder, 'short.git')), '--name', 'short', ...auth);
      await works('repo', 'unreg', 'short');
      expect((await up.api.get('/api/v1/namespaces/default/secrets/short-auth')).status).toBe(404);
      expect((await porchctl('repo', 'get')).stdout).not.toContain('short');
      expect(up.ownFailures()).toEqual([]);
    });
  });
}
