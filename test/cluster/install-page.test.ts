import { readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { git, initBare, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { buildGoProgram, HELM } from '../support/go-program.ts';
import { hasKubectl } from '../support/kubectl.ts';
import { CHECKOUT, PageShell } from '../support/page-shell.ts';
import { type PageStep, sectionsOf } from '../support/page-steps.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { PodPlayer } from './support/pod-player.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const page = readFileSync(join(CHECKOUT, 'docs/install.md'), 'utf8');
/** Of Helm, where it was not built before. */
const MAX_BUILD_MS = 900_000;
const KEPT = ['secret sluice-signing-key', 'lease sluice', 'configmaps --selector=sluice.dev/trust-ledger'];

describe(
  'docs/install.md',
  skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')),
  () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let plane: ControlPlane;
    let gitServer: GitServer;
    let shell: PageShell;

    // Each test has a cluster of its own: until all definitions of another one are gone can take minutes on a loaded machine.
    beforeEach(async () => {
      const programs = await clusterPrograms(() => undefined);
      if ('missing' in programs) throw new Error(programs.missing);
      const { path, missing: why } = await buildGoProgram(HELM);
      if (path === undefined) throw new Error(why);
      folder = temporaryFolder();
      plane = await ControlPlane.start({ programs, controllerManager: true });
      const repository = initBare(join(folder.path, 'apps.git'));
      const commit = git(repository, ['commit-tree', git(repository, ['mktree']), '-m', 'first']);
      git(repository, ['update-ref', 'refs/heads/main', commit]);
      gitServer = await startGitServer({ root: folder.path });
      shell = await PageShell.create(folder.path, plane.kubeconfig, { helm: `'${path}'` });
      await symlink(join(CHECKOUT, 'deploy'), join(shell.work, 'deploy'));
      await writeFile(join(shell.work, 'token.txt'), 'secret');
      const [, yaml = ''] = /^# repository\.yaml\n([\s\S]*?)^```$/m.exec(page) ?? [];
      await writeFile(join(shell.work, 'repository.yaml'), yaml.replace('https://git.example.com', gitServer.url));
    }, MAX_BUILD_MS);
    afterEach(async () => {
      await gitServer?.close();
      await plane?.stop();
      folder?.remove();
    });

    /** Follows sections of the page. After the command that creates the Deployment, its pods run. */
    async function follow(titles: readonly string[], installs: RegExp, atEnd: (player: PodPlayer) => Promise<void>) {
      await using stack = new AsyncDisposableStack();
      let player: PodPlayer | undefined;
      const steps = titles.flatMap((title) => sectionsOf(page).find((one) => one.title === title)?.steps ?? []);
      expect(steps.length).toBeGreaterThan(2);
      for (const step of steps) {
        await followStep(step, player);
        if (installs.test(step.command)) player = stack.use(new PodPlayer(stack.use(await Installation.adopt(plane))));
      }
      if (player === undefined) throw new Error(`no command of the page matches ${String(installs)}`);
      await atEnd(player);
    }

    async function followStep(step: PageStep, player: PodPlayer | undefined): Promise<void> {
      await shell.follow(step).catch((cause: unknown) => {
        throw player === undefined ? cause : new Error(`${String(cause)}\nwhile the replicas logged\n${player.log}`);
      });
    }

    async function allStopped(player: PodPlayer): Promise<void> {
      await eventually(
        async () => player.count,
        (count) => count === 0,
      );
    }

    test('kubectl installs it, registers a Repository and uninstalls it', async () => {
      await follow(['Install in a cluster', 'Uninstall'], /^kubectl apply -k/, async (player) => {
        await allStopped(player);
        for (const name of KEPT)
          expect(await shell.run(`kubectl -n sluice-system get ${name} --output=name`)).toContain('/sluice');
        expect(await shell.run('kubectl get repositories')).toContain('apps');
      });
      await shell.succeed('kubectl delete -k deploy/overlays/ha --ignore-not-found --wait=false');
    });

    test('Helm installs and uninstalls it', async () => {
      await follow(['With Helm'], /^helm install/, async (player) => {
        await shell.succeed('helm uninstall sluice --namespace sluice-system');
        await allStopped(player);
        expect(await shell.run('kubectl get crds')).toContain('repositories.config.porch.kpt.dev');
        expect(await shell.run('kubectl -n sluice-system get secrets')).toContain('sluice-signing-key');
      });
    });
  },
);
