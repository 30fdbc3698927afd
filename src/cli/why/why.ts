import { explainSchema } from '../../package/model/revision/revision-readings.ts';
import { printFreezes } from '../access/frozen-banner.ts';
import { placedCommand } from '../access/hints/command-for.ts';
import { inAccess } from '../access/in-access.ts';
import { placeOf } from '../access/place.ts';
import { placedExplanation } from '../access/placed-explanation.ts';
import { readRevision } from '../access/read-revision.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { printExplanation } from './print-explanation.ts';
import { explainObject, printObjectExplanation, revisionName } from './why-object.ts';

export interface WhyOptions extends PlaceOptions, ActorOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

/** `sluice why` */
export function why(text: string, options: WhyOptions, invocation: Invocation): Promise<CommandResult> {
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const name = revisionName(text);
    const isServer = placeOf(options, invocation.environment).kind === 'server';
    const place = placedCommand(options, invocation, isServer);
    const isDocument = options.output !== 'text';
    const found = await explainObject(access, name);
    if (found !== undefined) {
      // The explanation of a revision begins with them.
      await printFreezes(access, terminal, access.namespace);
      const { commands, reasons } = found;
      const object = {
        ...found,
        reasons: isDocument ? reasons.map((reason) => terminal.copyable(reason)) : reasons,
        ...(commands === undefined ? {} : { commands: commands.map((one) => place(one)) }),
      };
      if (options.output === 'json') terminal.out.write(toJson(object));
      else if (options.output === 'yaml') terminal.out.write(toYaml(object));
      else printObjectExplanation(terminal, object, place);
      return 0;
    }
    const shown = await readRevision(access, name, 'explain', explainSchema);
    const explanation = placedExplanation(options, invocation, { isServer, isDocument })(shown.explanation);
    if (options.output === 'json') terminal.out.write(toJson(explanation));
    else if (options.output === 'yaml') terminal.out.write(toYaml(explanation));
    else printExplanation(terminal, explanation, access.clock.now());
    return 0;
  });
}
