import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { git, initBare, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { hasKubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { type PageStep, sectionsOf, showsAs } from './support/page-steps.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const checkout = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(checkout, 'docs/operate.md'), 'utf8');
const run = promisify(execFile);
/** What changes something at each call, also where its output is another one. */
const ONCE = /^kubectl .*\b(?:delete|create|scale|rollout)\b|^sluice (?:import|export)/;
const POD_PREFIX = 'sluice-6d5c7f9b8-';

test('docs/operate.md describes each alert', () => {
  const rules = readFileSync(join(checkout, 'deploy/components/monitoring/prometheus-rule.yaml'), 'utf8');
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name = '']) => name);
  expect(alerts).toHaveLength(5);
  expect(alerts.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([]);
});

describe(
  'docs/operate.md',
  skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')),
  () => {
    const folder = temporaryFolder();
    const work = join(folder.path, 'work');
    let plane: ControlPlane;
    let gitServer: GitServer;
    let installation: Installation;
    let environment: NodeJS.ProcessEnv;
    let running: Replica[] = [];

    beforeAll(async () => {
      const programs = await clusterPrograms(() => undefined);
      if ('missing' in programs) throw new Error(programs.missing);
      plane = await ControlPlane.start({ programs });
      await installDefinitions(plane.kubeconfig);
      const repository = initBare(join(folder.path, 'apps.git'));
      const commit = git(repository, ['commit-tree', git(repository, ['mktree']), '-m', 'first']);
      git(repository, ['update-ref', 'refs/heads/main', commit]);
      gitServer = await startGitServer({ root: folder.path });
      installation = await Installation.create(plane);
      await mkdir(join(folder.path, 'bin'));
      await mkdir(work);
      const sluice = `#!/bin/sh\nexec '${process.execPath}' '${join(checkout, 'bin/sluice.js')}' "$@"\n`;
      await writeFile(join(folder.path, 'bin/sluice'), sluice);
      await chmod(join(folder.path, 'bin/sluice'), 0o755);
      environment = {
        ...process.env,
        PATH: `${join(folder.path, 'bin')}:${process.env.PATH}`,
        ...{ HOME: folder.path, KUBECONFIG: plane.kubeconfig, NO_COLOR: '1' },
      };
      await writeFile(join(work, 'setup.yaml'), setup(gitServer.url));
      await shell(`kubectl apply -f '${join(checkout, 'deploy/base/deployment.yaml')}' -f setup.yaml`);
      await startReplicas();
      await shell('kubectl wait repository apps --for=condition=Ready --timeout=60s');
      for (const command of ['init web --repository apps --workspace v1', 'propose apps.web.v1', 'approve apps.web.v1'])
        await shell(`sluice rpkg ${command}`);
      await shell('sluice rpkg init shop --repository apps --workspace v1');
    });
    afterAll(async () => {
      await installation?.[Symbol.asyncDispose]();
      await gitServer?.close();
      await plane?.stop();
      folder.remove();
    });

    /** Runs a command in the folder of the operator; returns what it printed, whether it failed or not. */
    async function shell(command: string): Promise<string> {
      const { stdout, stderr } = await run('bash', ['--norc', '-c', command], { cwd: work, env: environment }).catch(
        (error: unknown) => error as { readonly stdout: string; readonly stderr: string },
      );
      return `${stdout}${stderr}`;
    }

    async function startReplicas(): Promise<void> {
      for (const [at, name] of ['4xk2p', '9wq7d'].entries()) {
        const cacheDir = join(folder.path, 'caches', String(installation.replicas.length));
        const replica = await installation.start({ cacheDir, environment: { POD_NAME: `${POD_PREFIX}${name}` } });
        running.push(replica);
        if (at === 0) await replica.leading();
        else await replica.live();
      }
      await installation.served();
    }

    async function stopReplicas(): Promise<void> {
      const stopped = running;
      running = [];
      // The standby first, so that it does not become leader.
      for (const replica of stopped.toReversed()) expect(await replica.stop()).toBe(0);
    }

    /** What the kubelet and the Deployment controller of a cluster do; here are no nodes. */
    async function actAsKubelet(command: string): Promise<void> {
      if (/rollout restart|--replicas=0/.test(command)) await stopReplicas();
      if (/rollout restart|--replicas=2/.test(command)) await startReplicas();
    }

    const failures: Readonly<Record<string, () => Promise<void>>> = {
      'The leader is killed': async () => {
        running[0]?.kill('SIGKILL');
        await running.shift()?.ended;
      },
      'A Git host is down': async () => {
        gitServer.behaviour.refuse = 503;
      },
      'The cache is lost': async () => {
        for (const replica of running) replica.kill('SIGKILL');
        await Promise.all(running.map(({ ended }) => ended));
        running = [];
        const caches = join(folder.path, 'caches');
        expect(await readdir(caches)).not.toEqual([]);
        await rm(caches, { recursive: true });
        await startReplicas();
      },
    };
    const repairs: Readonly<Record<string, () => Promise<void>>> = {
      'A Git host is down': async () => {
        delete gitServer.behaviour.refuse;
        await shell('kubectl wait repository apps --for=condition=Ready --timeout=60s');
      },
    };
    /** A new cluster: what the operator restores is not there. */
    async function loseObjects(): Promise<void> {
      await shell(
        'kubectl delete repository apps && kubectl delete packagepolicy --all && kubectl delete secret apps-auth',
      );
      await shell(
        'kubectl -n sluice-system delete secret sluice-signing-key && kubectl -n sluice-system delete configmap -l sluice.dev/trust-ledger',
      );
    }

    async function follow({ command, shown }: PageStep): Promise<void> {
      let output = await shell(command);
      if (!ONCE.test(command) && !showsAs(output, shown))
        output = await eventually(
          () => shell(command),
          (later) => showsAs(later, shown),
        ).catch((error: unknown) => `${output}${String(error)}`);
      if (!showsAs(output, shown)) expect(`$ ${command}\n${output}`).toBe(`$ ${command}\n${shown}`);
      await actAsKubelet(command);
    }

    const sections = sectionsOf(page).filter(({ steps }) => steps.length > 0);
    test('has commands in its sections', () => expect(sections.length).toBeGreaterThan(8));
    for (const { title, steps } of sections)
      test(title, async () => {
        await failures[title]?.();
        for (const [at, step] of steps.entries()) {
          await follow(step);
          if (title === 'Restore' && at === 0) await loseObjects();
        }
        await repairs[title]?.();
      });
  },
);

function setup(host: string): string {
  return `apiVersion: v1
kind: Secret
metadata: {name: apps-auth, namespace: default}
type: kubernetes.io/basic-auth
stringData: {username: sluice, password: secret}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: reviewed, namespace: default}
spec: {selector: {packages: [db]}, requiredGates: [{conditionType: example.com/Reviewed}]}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: apps, namespace: default}
spec: {type: git, git: {repo: "${host}/apps.git", branch: main, secretRef: {name: apps-auth}}}
`;
}
