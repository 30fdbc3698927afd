import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { SluiceError } from '../foundation/sluice-error.ts';
import { bash } from './completion/bash.ts';
import { fish } from './completion/fish.ts';
import type { Launch } from './completion/shell-text.ts';
import { type Places, placesOf } from './completion/words.ts';
import { zsh } from './completion/zsh.ts';
import type { CommandResult, Invocation } from './output/invocation.ts';

const SCRIPTS: Readonly<Record<string, (places: Places, launch: Launch) => string>> = { bash, zsh, fish };

/** `sluice completion bash|zsh|fish`: a script that runs sluice only to look up names of revisions, repositories and targets. */
export function completion(shell: string, program: Command, { terminal }: Invocation): CommandResult {
  const script = SCRIPTS[shell];
  if (script === undefined || !Object.hasOwn(SCRIPTS, shell)) {
    throw new SluiceError(
      'InvalidInput',
      `there is completion for ${Object.keys(SCRIPTS).join(', ')}, not for ${shell}`,
    );
  }
  terminal.out.write(script(placesOf(program), launch()));
  return 0;
}

/** In a checkout sluice is on no path, and npx takes longer than the lookup. */
function launch(): Launch {
  const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
  const isCheckout = import.meta.url.endsWith('.ts') && existsSync(bin);
  return { isCheckout, words: isCheckout ? [process.execPath, bin] : ['command', 'sluice'] };
}
