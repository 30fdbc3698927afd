import { chmod, copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buildOnce, userCacheFolder } from '../../../support/built-once.ts';
import { whyMissing } from '../../../support/go-program.ts';
import { GoModule } from '../go-module.ts';

const ARGOCD = 'github.com/argoproj/argo-cd/v3';
/** Scripts of the image of Argo CD that its repo-server calls to verify signatures. */
const SCRIPTS = ['git-verify-wrapper.sh', 'gpg-wrapper.sh'];

export interface ArgoCdProgram {
  /** Runs a component, which its first argument names. */
  readonly path: string;
  /** A folder for PATH, with the scripts that the components call. */
  readonly scripts: string;
  /** The folder of the module, with its manifests. */
  readonly module: string;
}

/**
 * Builds the components of Argo CD of `test/cluster/tools/argocd`, once for each user of this machine and each version. Returns the reason where
 * that is not possible.
 */
export async function argoCdProgram(
  report: (line: string) => void,
): Promise<ArgoCdProgram | { readonly missing: string }> {
  const tools = new GoModule('argocd');
  const folder = join(userCacheFolder('sluice-cluster'), `argocd-${await tools.hash('main.go')}`);
  const path = join(folder, 'argocd');
  const scripts = join(folder, 'scripts');
  try {
    await buildOnce(path, (unfinished) => tools.build('argocd', '.', unfinished, report));
    const module = await tools.dependencyFolder(ARGOCD);
    await buildOnce(scripts, (unfinished) => copyScripts(module, unfinished));
    return { path, scripts, module };
  } catch (error) {
    const missing = whyMissing(error);
    if (missing === undefined) throw error;
    return { missing };
  }
}

/** Files of a module are not executable. */
async function copyScripts(module: string, folder: string): Promise<void> {
  await mkdir(folder);
  for (const name of SCRIPTS) {
    await copyFile(join(module, 'hack', name), join(folder, name));
    await chmod(join(folder, name), 0o755);
  }
}
