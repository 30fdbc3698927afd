import { readFileSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { git, initBare, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { hasKubectl } from '../support/kubectl.ts';
import { CHECKOUT, PageShell } from '../support/page-shell.ts';
import { sectionsOf } from '../support/page-steps.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const page = readFileSync(join(CHECKOUT, 'docs/operate.md'), 'utf8');
const POD_PREFIX = 'sluice-6d5c7f9b8-';

interface Pod {
  readonly name: string;
  readonly cacheDir: string;
}

test('docs/operate.md describes each alert', () => {
  const rules = readFileSync(join(CHECKOUT, 'deploy/components/monitoring/prometheus-rule.yaml'), 'utf8');
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name = '']) => name);
  expect(alerts).toHaveLength(8);
  expect(alerts.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([]);
});

describe(
  'docs/operate.md',
  skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')),
  () => {
    const folder = temporaryFolder();
    let plane: ControlPlane;
    let gitServer: GitServer;
    let installation: Installation;
    let shell: PageShell;
    const sections = sectionsOf(page).filter(({ steps }) => steps.length > 0);
    const running = new Map<Pod, Replica>();

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
      shell = await PageShell.create(folder.path, plane.kubeconfig);
      await writeFile(join(shell.work, 'setup.yaml'), setup(gitServer.url));
      await shell.succeed(`kubectl apply -f '${join(CHECKOUT, 'deploy/base/deployment.yaml')}' -f setup.yaml`);
      // As install.md says.
      const commands = sections.flatMap(({ steps }) => steps.map(({ command }) => command));
      await shell.succeed(commands.find((command) => command.includes('create rolebinding')) ?? 'false');
      await startReplicas();
      await shell.succeed('kubectl wait repository apps --for=condition=Ready --timeout=60s');
      for (const command of ['init web --repository apps --workspace v1', 'propose apps.web.v1', 'approve apps.web.v1'])
        await shell.succeed(`sluice rpkg ${command}`);
      await shell.succeed('sluice rpkg init shop --repository apps --workspace v1');
    });
    afterAll(async () => {
      await installation?.[Symbol.asyncDispose]();
      await gitServer?.close();
      await plane?.stop();
      folder.remove();
    });

    async function startReplica(pod: Pod): Promise<Replica> {
      const { name, cacheDir } = pod;
      const replica = await installation.start({ cacheDir, environment: { POD_NAME: `${POD_PREFIX}${name}` } });
      running.set(pod, replica);
      return replica;
    }

    /** Starts those of new pods, whose volumes are empty. */
    async function startReplicas(): Promise<void> {
      for (const name of ['4xk2p', '9wq7d']) {
        const cacheDir = join(folder.path, 'caches', String(installation.replicas.length));
        await (await startReplica({ name, cacheDir })).warm();
      }
      await installation.served();
    }

    async function stopReplicas(): Promise<void> {
      const stopped = [...running.values()];
      running.clear();
      expect(await Promise.all(stopped.map((replica) => replica.stop()))).toEqual(stopped.map(() => 0));
    }

    /** What the kubelet and the Deployment controller of a cluster do; here are no nodes. */
    async function actAsKubelet(command: string): Promise<void> {
      if (/rollout restart|--replicas=0/.test(command)) await stopReplicas();
      if (/rollout restart|--replicas=2/.test(command)) await startReplicas();
    }

    /** Kills the leader. kubelet starts the container again, with the same volume. */
    async function killLeader(): Promise<void> {
      for (const [pod, replica] of running) {
        if (!(await replica.isLeading())) continue;
        replica.kill('SIGKILL');
        await replica.ended;
        await (await startReplica(pod)).live();
        return;
      }
      throw new Error('no replica leads');
    }

    const failures: Readonly<Record<string, () => Promise<void>>> = {
      'A Repository cannot read its Secret': async () => {
        await shell.succeed('kubectl delete rolebinding sluice-git-credentials && kubectl delete repository apps');
        await eventually(
          () => shell.run('kubectl auth can-i get secret/apps-auth --as system:serviceaccount:sluice-system:sluice'),
          (output) => output.startsWith('no'),
        );
        await shell.succeed('kubectl apply -f setup.yaml');
      },
      'The leader is killed': killLeader,
      'A Git host is down': async () => {
        gitServer.behaviour.refuse = 503;
      },
      'The leader fails while a Git host is down': async () => {
        gitServer.behaviour.refuse = 503;
        await killLeader();
      },
      'The cache is lost': async () => {
        for (const replica of running.values()) replica.kill('SIGKILL');
        await Promise.all([...running.values()].map(({ ended }) => ended));
        running.clear();
        const caches = join(folder.path, 'caches');
        expect(await readdir(caches)).not.toEqual([]);
        await rm(caches, { recursive: true });
        await startReplicas();
      },
    };
    const repairs: Readonly<Record<string, () => Promise<void>>> = {
      'A Git host is down': repairHost,
      'The leader fails while a Git host is down': repairHost,
    };
    async function repairHost(): Promise<void> {
      delete gitServer.behaviour.refuse;
      await shell.succeed('kubectl wait repository apps --for=condition=Ready --timeout=60s');
    }

    /** A new cluster: what the operator restores is not there. */
    async function loseObjects(): Promise<void> {
      await shell.succeed(
        'kubectl delete repository apps && kubectl delete packagepolicy --all && kubectl delete secret apps-auth && kubectl delete rolebinding sluice-git-credentials',
      );
      await shell.succeed(
        'kubectl -n sluice-system delete secret sluice-signing-key && kubectl -n sluice-system delete configmap -l sluice.dev/trust-ledger',
      );
    }

    test('has commands in its sections', () => expect(sections.length).toBeGreaterThan(10));
    for (const { title, steps } of sections)
      test(title, async () => {
        await failures[title]?.();
        for (const [at, step] of steps.entries()) {
          await shell.follow(step);
          await actAsKubelet(step.command);
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
