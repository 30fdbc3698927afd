import { BUILT_IN_RESOLVERS } from '../../app/built-in-resolvers.ts';
import { explain } from '../../app/explain/explain.ts';
import { lostTag } from '../../app/explain/lost-tag.ts';
import { runningUp } from '../../app/up-lock.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { inSession } from '../access/in-session.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { commandFor } from '../program/command-for.ts';
import type { Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';
import { printExplanation } from './print-explanation.ts';

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
