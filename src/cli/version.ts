import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sluiceVersion } from '../app/sluice-version.ts';
import { gitVersion, initRepository } from '../git/open/open-repository.ts';
import type { CommandResult, Invocation } from './output/invocation.ts';
import { printable } from './output/printable.ts';
import { toJson, toYaml } from './output/structured.ts';

/** `sluice version`: also which Git engine is used here, and what that limits. */
export async function version(options: { output: string }, { terminal }: Invocation): Promise<CommandResult> {
  const git = await gitVersion();
  const versions = { sluice: sluiceVersion(), node: process.versions.node, git: git ?? '', ...(await engine()) };
  if (options.output !== 'text') {
    terminal.out.write(options.output === 'json' ? toJson(versions) : toYaml(versions));
    return 0;
  }
  terminal.line(`sluice ${versions.sluice}`);
  terminal.line(`node   ${versions.node}`);
  terminal.line(`git    ${git === undefined ? 'none' : printable(git)} (${versions.engine} engine)`);
  if (versions.limits !== '') terminal.line(printable(versions.limits));
  return 0;
}

/** Returns the engine that repositories use here, determined with a temporary repository. */
async function engine(): Promise<{ engine: string; limits: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-version-'));
  try {
    const repository = await initRepository(join(folder, 'probe.git'));
    const found = { engine: repository.engine, limits: repository.engineNote ?? '' };
    await repository.close();
    return found;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
