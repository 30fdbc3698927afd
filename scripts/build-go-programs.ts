// Builds what `npm run test:go`, `npm run test:forge` and `npm run test:cluster` need, so that a run of all suites can do it beside those
// that need no Go. Prints what each program cost, and what cannot be built here and why; exits 1 if a build fails.
import { argoCdProgram } from '../test/cluster/support/gitops/argocd-program.ts';
import { porchProgram } from '../test/cluster/support/porch/porch-program.ts';
import { clusterPrograms } from '../test/cluster/support/programs.ts';
import { giteaProgram } from '../test/forge/support/gitea-program.ts';
import { buildGoProgram, CLIENTS, HELM, PORCHCTL } from '../test/support/go-program.ts';

for (const program of [CLIENTS, PORCHCTL, HELM])
  await timed(program.name, async () => {
    const { path, missing } = await buildGoProgram(program);
    return path ?? missing;
  });
await timed('gitea', async () => {
  const gitea = await giteaProgram();
  return 'missing' in gitea ? gitea.missing : gitea.path;
});
await timed('cluster', async () => {
  const programs = await clusterPrograms((line) => console.log(`cluster: ${line}`));
  return 'missing' in programs ? programs.missing : programs.folder;
});
await timed('argocd', async () => {
  const argocd = await argoCdProgram((line) => console.log(`cluster: ${line}`));
  return 'missing' in argocd ? argocd.missing : argocd.path;
});
await timed('porch', async () => {
  const porch = await porchProgram();
  return 'missing' in porch ? porch.missing : porch.path;
});

/** Prints the result with its duration. */
async function timed(name: string, build: () => Promise<string>): Promise<void> {
  const start = Date.now();
  const result = await build();
  console.log(`${name}: ${result} (${Math.round((Date.now() - start) / 1000)} s)`);
}
