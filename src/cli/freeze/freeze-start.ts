import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import type { Access } from '../access/access.ts';
import { actorOf } from '../access/actor.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { inAccess } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { type FreezePlace, freezeNamespace } from './freeze-place.ts';

export interface FreezeStartOptions extends PlaceOptions, ActorOptions, FreezePlace {
  readonly reason?: string;
  readonly until?: string;
  readonly name?: string;
}

/** `sluice freeze` */
export async function freezeStart(options: FreezeStartOptions, invocation: Invocation): Promise<CommandResult> {
  const { reason = '', until } = options;
  if (reason.trim() === '')
    throw new SluiceError('InvalidInput', 'a freeze needs a reason for the users who wait; give one with --reason');
  return inAccess(
    options,
    invocation,
    async (access) => {
      const { terminal, environment } = invocation;
      const now = access.clock.now();
      const end = until === undefined ? undefined : endOf(until, now);
      const namespace = freezeNamespace(access, options);
      const name = options.name ?? `freeze-${timestamp(now).replace(/[-:Z]/g, '').replace('T', '-')}`;
      const startedBy = await userOf(access, options, environment);
      const spec = {
        ...{ reason },
        ...(startedBy === undefined ? {} : { startedBy }),
        ...(end === undefined ? {} : { until: end }),
      };
      const command = commandFor(options, invocation);
      const all = options.allNamespaces === true ? ['--all-namespaces'] : [];
      await access.client.create(freezeKind, { metadata: { name, namespace }, spec }).catch((error: unknown) => {
        if (!isSluiceError(error, 'AlreadyExists')) throw error;
        const next = `"${command('freeze', 'get', ...all)}" shows it; give another name with --name, or end that one first: ${command('freeze', 'end', name, ...all)}`;
        throw new SluiceError(
          'AlreadyExists',
          `there is a Freeze "${name}" in namespace ${namespace} already; ${next}`,
        );
      });
      const where = options.allNamespaces === true ? 'all namespaces are' : `namespace ${namespace} is`;
      terminal.line(`${where} frozen until ${end ?? 'the freeze is ended'}: ${printable(reason)}`);
      terminal.line(`Next: ${command('freeze', 'end', name, ...all)}`);
      return 0;
    },
    true,
  );
}

/** The user as the server knows them. A data folder authenticates no user, so that it is what the command reports. */
async function userOf(
  access: Access,
  options: FreezeStartOptions,
  environment: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  if (access.server === undefined) return actorOf(options, environment).name;
  try {
    return (await access.caller()).name;
  } catch (error) {
    // The name only informs, and a server may not report it.
    if (isSluiceError(error)) return undefined;
    throw error;
  }
}

/** Converts a duration or a time to a time in RFC 3339. */
function endOf(text: string, now: number): string {
  const duration = parseDuration(text);
  const end = duration === undefined ? Date.parse(text) : now + duration;
  if (Number.isNaN(end) || (duration === undefined && !/^\d{4}-\d\d-\d\dT/.test(text)))
    throw new SluiceError(
      'InvalidInput',
      `--until ${JSON.stringify(text)} is neither a duration such as 2h30m nor a time such as 2026-01-02T15:04:05Z`,
    );
  if (end <= now) throw new SluiceError('InvalidInput', `--until ${text} has passed already; give a later time`);
  return timestamp(end);
}
