import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { BUILT_IN_RESOLVERS } from '../assembly/built-in-resolvers.ts';
import { runningUp } from '../assembly/up-lock.ts';
import { toJson, toYaml } from '../output/structured.ts';
import type { Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';
import { explain } from '../why/explain.ts';
import { lostTag } from '../why/lost-tag.ts';
import { printExplanation } from '../why/print-explanation.ts';
import { commandFor } from './command-for.ts';
import { inSession } from './in-session.ts';

export interface WhyOptions extends PlaceOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

/** `sluice why`: reads the truth itself, so it works while `sluice up` runs and without it. */
export function why(name: string, options: WhyOptions, invocation: Invocation): Promise<Outcome> {
  return inSession('why', options, invocation, async ({ session, find, openAll }) => {
    const { terminal } = invocation;
    const revision = await find(name).catch(async (error: unknown) => {
      const lost = isSluiceError(error, 'NotFound') ? await lostTag(session, name) : undefined;
      throw lost === undefined ? error : new SluiceError('NotFound', `package revision "${name}" not found: ${lost}`);
    });
    // Packages of other repositories may come from it.
    if (revision.lifecycle === 'DeletionProposed') await openAll();
    const up = await runningUp(session.folder);
    const explanation = await explain(session, revision, {
      resolvers: up?.resolvers ?? BUILT_IN_RESOLVERS,
      running: up !== undefined,
      disabled: up?.disabled ?? [],
      now: session.clock.now(),
      actor: session.actor.name,
      command: commandFor(options, invocation),
    });
    if (options.output === 'json') terminal.out.write(toJson(explanation));
    else if (options.output === 'yaml') terminal.out.write(toYaml(explanation));
    else printExplanation(terminal, explanation, session.clock.now());
    return 0;
  });
}
