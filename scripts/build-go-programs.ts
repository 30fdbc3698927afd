// Builds what `npm run test:go` and `npm run test:forge` need, so that a run of all suites can do it beside those that need no Go.
// Prints what cannot be built here, and why; exits 1 if a build fails.
import { giteaProgram } from '../test/forge/support/gitea-program.ts';
import { buildGoProgram, CLIENTS, PORCHCTL } from '../test/support/go-program.ts';

for (const program of [CLIENTS, PORCHCTL]) {
  const { path, missing } = await buildGoProgram(program);
  console.log(`${program.name}: ${path ?? missing}`);
}
const gitea = await giteaProgram();
console.log(`gitea: ${'missing' in gitea ? gitea.missing : gitea.path}`);
