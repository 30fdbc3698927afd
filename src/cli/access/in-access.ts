import { describeFailure, type OpenFailure } from '../../app/repositories/open-failure.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { FROZEN_PREFIX } from '../../package/model/policy/approval-rules.ts';
import type { ActorOptions, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable, printableLines } from '../output/printable.ts';
import type { Access } from './access.ts';
import { commandFor, placedHints } from './hints/command-for.ts';
import { nextCommands } from './hints/next-commands.ts';
import { roleHint } from './hints/role-hint.ts';
import { openAccess } from './open-access.ts';

/**
 * Runs a command on the server or the data folder that its command line means, and always closes what it opened. `run` gets the
 * warnings about its requests too, for its output; they are printed as they come.
 */
export async function inAccess<Result>(
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
  run: (access: Access, warnings: readonly string[]) => Promise<Result>,
  write = false,
): Promise<Result> {
  const { terminal, environment } = invocation;
  const note = (label: string) => (text: string, namespace?: string) =>
    terminal.note(`${terminal.style('yellow', label, terminal.err)} ${printable(text)}`, namespace);
  const warn = note('warning:');
  const warnings: string[] = [];
  const onWarning = (text: string, namespace?: string) => {
    // The banner of the command says so.
    if (text.startsWith(FROZEN_PREFIX)) return;
    warnings.push(text);
    warn(text, namespace);
  };
  const onOpenFailure = (failure: OpenFailure) => {
    const label = terminal.style('yellow', 'warning:', terminal.err);
    terminal.note(`${label} ${printableLines(describeFailure(failure))}`, failure.namespace);
  };
  const access = await openAccess({ options, environment, write, onNote: note('note:'), onWarning, onOpenFailure });
  terminal.defaultNamespace = access.defaultNamespace;
  terminal.completeCommands = placedHints(options, invocation);
  try {
    if (options.verbose === true || environment.SLUICE_DEBUG === '1') terminal.note(`using ${printable(access.where)}`);
    return await run(access, warnings);
  } catch (error) {
    throw await located(error, access, commandFor(options, invocation));
  } finally {
    await access.close();
  }
}

/**
 * Adds the server to the error of a refusal or a missing object, since the user may have meant another server, the next commands to a
 * refusal that names none, and to one for a missing right the roles that have it.
 */
async function located(
  error: unknown,
  { server, where, isOwnServer }: Access,
  commandOf: (...words: string[]) => string,
): Promise<unknown> {
  if (!isSluiceError(error) || error.code === 'Internal') return error;
  const next = nextCommands(error.message, undefined).map((words) => `\nNext: ${commandOf(...words)}`);
  const scope = scopeHint(error.message);
  const hint = scope === '' && isOwnServer ? await roleHint(error.message) : scope;
  const message = `${error.message}${leaderHint(error.message)}${hint}`;
  const asked = server === undefined || message.includes(server) ? '' : ` (server: ${where})`;
  if (asked === '' && next.length === 0 && message === error.message) return error;
  return new SluiceError(error.code, `${message}${asked}${next.join('')}`, { cause: error, details: error.details });
}

/** For a refusal to read all namespaces; empty for other messages. */
export function scopeHint(message: string): string {
  return / list .* at the cluster scope$/.test(message) ? '; -n <namespace> reads one namespace' : '';
}

/** The aggregation layer of a cluster says nothing else while no replica of Sluice serves the package kinds. */
function leaderHint(message: string): string {
  if (!/^(?:the server is )?(?:service unavailable|error trying to reach service)/i.test(message)) return '';
  return ': "kubectl get apiservice v1alpha1.porch.kpt.dev" shows whether a replica of Sluice leads';
}
