import { type Command, CommanderError } from 'commander';
import { sluiceVersion } from '../app/sluice-version.ts';
import { PLACED_GROUPS, placedHints } from './access/hints/command-for.ts';
import { addCheckCommand } from './check/check-command.ts';
import { addDoraCommand } from './dora/dora-command.ts';
import { addFnCommands } from './fn/fn-commands.ts';
import { addFreezeCommands } from './freeze/freeze-commands.ts';
import { addKeyCommands } from './key/key-commands.ts';
import { addKptfileCommands } from './kptfile/kptfile-commands.ts';
import { addMigrateCommands } from './migrate/migrate-commands.ts';
import type { CommandResult, Invocation, PlaceOptions } from './output/invocation.ts';
import { reportError } from './output/report-error.ts';
import { addRepoCommands } from './repo/repo-commands.ts';
import { addRevisionCommands } from './rpkg/revision-commands.ts';
import { addServiceCommands } from './service-commands.ts';
import { SluiceCommand } from './sluice-command.ts';
import { addTargetCommands } from './target/target-commands.ts';
import { addWaveCommands } from './wave/wave-commands.ts';

const USAGE_ERROR = 2;

/** Runs one command line; returns the exit code. Never throws. */
export async function runProgram(words: readonly string[], { terminal, environment }: Invocation): Promise<number> {
  let outcome: CommandResult;
  // A separate object, since options that all commands share are added to it.
  const invocation = { terminal, environment: { ...environment } };
  const program = buildProgram(invocation, (result) => {
    outcome = result;
  });
  try {
    await program.parseAsync(withKnownHelp(words, program), { from: 'user' });
    return outcome ?? 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    return reportError(error, invocation);
  }
}

/** Commander answers `help` of an unknown command with the whole help and no error, so that it gets the unknown command itself. */
function withKnownHelp(words: readonly string[], program: Command): readonly string[] {
  const [first, name] = words;
  if (first !== 'help' || name === undefined || name.startsWith('-')) return words;
  const isKnown = program.commands.some((command) => command.name() === name || command.aliases().includes(name));
  return isKnown ? words : words.slice(1);
}

/** The tree of commands. What a command does is imported when it runs, so that --help and completion stay fast. */
export function buildProgram(invocation: Invocation, finish: (outcome: CommandResult) => void): Command {
  const { terminal } = invocation;
  const program = new SluiceCommand('sluice')
    .description('Moves configuration packages in Git through readiness gates: Draft, Proposed, Published, delivered.')
    .version(sluiceVersion(), '-V, --version', 'print the version of sluice')
    .option(
      '--signing-key <file>',
      'private key that signs statements (default: $SLUICE_SIGNING_KEY, else that of the data folder)',
    )
    .option('--signing-key-secret <namespace/name>', 'Secret with that key (default: $SLUICE_SIGNING_KEY_SECRET)')
    .hook('preAction', (command, action) => {
      shareOptions(command, invocation);
      terminal.completeCommands = placedHints(targetOf(action), invocation);
    })
    .helpCommand('help [command]', 'show the help of a command')
    .configureOutput({
      writeOut: (text) => void terminal.out.write(text),
      writeErr: (text) => void terminal.err.write(text),
    })
    .exitOverride()
    .showHelpAfterError('(--help shows what the command takes)');
  addServiceCommands(program, invocation, finish);
  addMigrateCommands(program, invocation, finish);
  addRepoCommands(program, invocation, finish);
  addRevisionCommands(program, invocation, finish);
  addTargetCommands(program, invocation, finish);
  addWaveCommands(program, invocation, finish);
  addFreezeCommands(program, invocation, finish);
  addDoraCommand(program, invocation, finish);
  addCheckCommand(program, invocation, finish);
  addFnCommands(program, invocation, finish);
  addKeyCommands(program, invocation, finish);
  addKptfileCommands(program, invocation, finish);
  program.addHelpText(
    'after',
    `
Environment:
  SLUICE_DATA   data folder, where --data is not given (default .sluice)
  SLUICE_USER   user of the request, where --as is not given (default: the user of the system)
  SLUICE_ALLOW_GIT_HOST, SLUICE_GIT_CA  as --allow-git-host (with commas) and --git-ca of "sluice up", for every command
  KUBECONFIG    server to work on, where no data folder is named ("sluice rpkg --help")
  SLUICE_SIGNING_KEY, SLUICE_SIGNING_KEY_SECRET
                what signs statements, where --signing-key and --signing-key-secret are not given
  SLUICE_DEBUG  1 shows where an error comes from, and which server or data folder is used
  NO_COLOR, FORCE_COLOR

Examples:
  sluice demo                          see packages move, and end
  sluice up --config conf/             run all controllers
  sluice rpkg get                      list package revisions
  sluice why packages.web-shop.v1      what a revision waits for, and what to do next`,
  );
  return program;
}

/** The options by which commands in messages work on the same target. Only those of some groups name it with --kubeconfig and -n. */
function targetOf(command: Command): PlaceOptions {
  const options = command.opts<PlaceOptions>();
  let top: Command = command;
  while (top.parent?.parent) top = top.parent;
  if (PLACED_GROUPS.includes(top.name())) return options;
  return options.data === undefined ? {} : { data: options.data };
}

/** Copies the global options to the places where commands read them. Command line options override the environment. */
function shareOptions(program: Command, { environment }: Invocation): void {
  const { signingKey, signingKeySecret } = program.opts<{ signingKey?: string; signingKeySecret?: string }>();
  if (signingKey === undefined && signingKeySecret === undefined) return;
  environment.SLUICE_SIGNING_KEY = signingKey;
  environment.SLUICE_SIGNING_KEY_SECRET = signingKeySecret;
}
