import { join } from 'node:path';
import type { GoClientServer } from '../../go/go-client-tests.ts';
import { KubeApi } from '../../support/api/kube-api.ts';
import { startGitServer } from '../../support/git/git-server.ts';
import { adminAccount } from './account-kubeconfig.ts';
import { applyObjects } from './apply-objects.ts';
import { ControlPlane } from './control-plane.ts';
import { installDefinitions } from './install-definitions.ts';
import { clusterPrograms } from './programs.ts';
import { readManifests } from './render.ts';
import { Installation } from './sluice-serve.ts';

/** Lines of the log of a replica about its own mistakes. */
const OWN_FAILURE = /request [0-9a-f]{8}-[0-9a-f-]{27}|defect of sluice|Unhandled|FATAL/;

/**
 * Starts a control plane with an installation of one replica, whose cache is in a folder, and a Git server of the repositories there. The
 * control plane is not shared: the programs that use it expect that they are its only users.
 */
export async function startInstalled(folder: string, words: readonly string[] = []): Promise<GoClientServer> {
  const programs = await clusterPrograms(() => undefined);
  if ('missing' in programs) throw new Error(programs.missing);
  await using stack = new AsyncDisposableStack();
  const git = await startGitServer({ root: folder });
  stack.defer(() => git.close());
  const plane = stack.use(await ControlPlane.start({ programs, controllerManager: true }));
  await installDefinitions(plane.kubeconfig);
  const installation = stack.use(await Installation.create(plane));
  // Tests register repositories with a Secret in many namespaces.
  await applyObjects(installation.admin, readManifests('components/git-credentials-everywhere/git-credentials'));
  const replica = await installation.start({ cacheDir: join(folder, 'cache'), options: words });
  await replica.leading();
  await installation.served();
  const { kubeconfig } = await adminAccount(plane.kubeconfig, 'go-clients');
  const api = await KubeApi.of(kubeconfig);
  stack.defer(() => api.close());
  const running = stack.move();
  return {
    ...{ kubeconfig, api, gitUrl: git.url },
    ownFailures: () => replica.lines.filter((line) => OWN_FAILURE.test(line)),
    stop: () => running.disposeAsync(),
  };
}
