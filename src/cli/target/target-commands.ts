import type { Command } from 'commander';
import { type Finish, PLACE_HELP } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';
import { addTargetGet, addTargetWatch } from './target-status-commands.ts';

/** `sluice target …` */
export function addTargetCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const target = program.command('target').description('work with delivery targets').addHelpText('after', PLACE_HELP);
  addTargetGet(target, invocation, finish);
  addTargetWatch(target, invocation, finish);
}
