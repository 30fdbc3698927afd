import { fail, type Machine, TABLE } from '../machine/machine.ts';
import type { Position } from '../machine/position.ts';
import { Builtin, type NamedArguments, StarlarkFunction } from './callable.ts';
import { type Cell, Frame } from './frame.ts';
import { Dict } from './hash-table.ts';
import { Tuple } from './sequence.ts';
import { typeName, type Value } from './value.ts';

/** Calls a value. Fails if it is not a function, and for wrong arguments. */
export function call(
  machine: Machine,
  callee: Value,
  args: Value[],
  named: NamedArguments | undefined,
  position: Position,
): Value {
  machine.position = position;
  machine.step(1);
  if (callee instanceof StarlarkFunction) {
    machine.enter({ name: callee.code.name, position, builtIn: false });
    const result = callee.code.body(new Frame(bindArguments(machine, callee, args, named), callee.free));
    machine.leave();
    return result;
  }
  if (!(callee instanceof Builtin)) return fail(`invalid call of non-function (${typeName(callee)})`);
  machine.enter({ name: callee.name, position, builtIn: true });
  const result = callee.call(machine, args, named);
  machine.leave();
  return result;
}

/** The variables of a new call. */
function bindArguments(
  machine: Machine,
  { code, defaults }: StarlarkFunction,
  args: Value[],
  named: NamedArguments | undefined,
): (Value | Cell | undefined)[] {
  const { positional, namedOnly, takesRest, takesNamedRest, parameters } = code;
  const slots: (Value | Cell | undefined)[] = new Array(code.slots).fill(undefined);
  const plain = positional + namedOnly;
  const given = Math.min(args.length, positional);
  for (let at = 0; at < given; at++) slots[at] = args[at];
  if (takesRest) {
    machine.elements(args.length + 1);
    slots[plain] = new Tuple(args.slice(positional));
  } else if (args.length > positional) tooMany(code.name, positional, plain, defaults, args.length);
  if (named !== undefined || takesNamedRest) {
    const rest = takesNamedRest ? new Dict() : undefined;
    if (rest !== undefined) machine.elements(TABLE);
    for (const [name, value] of named ?? []) {
      const at = parameters.indexOf(name);
      if (at !== -1 && at < plain) {
        if (slots[at] !== undefined) fail(`function ${code.name} got multiple values for parameter "${name}"`);
        slots[at] = value;
      } else if (rest !== undefined) rest.set(name, value);
      else fail(`function ${code.name} got an unexpected keyword argument "${name}"`);
    }
    if (rest !== undefined) slots[plain + (takesRest ? 1 : 0)] = rest;
  }
  if (given < plain) {
    let missing: string[] | undefined;
    for (let at = given; at < plain; at++) {
      if (slots[at] !== undefined) continue;
      const value = defaults[at];
      if (value === undefined) {
        missing ??= [];
        missing.push(parameters[at] ?? '');
      } else slots[at] = value;
    }
    if (missing !== undefined)
      fail(
        `function ${code.name} missing ${missing.length} argument${missing.length === 1 ? '' : 's'} (${missing.join(', ')})`,
      );
  }
  for (const slot of code.cells) slots[slot] = { value: slots[slot] as Value | undefined };
  return slots;
}

function tooMany(
  name: string,
  positional: number,
  plain: number,
  defaults: readonly (Value | undefined)[],
  given: number,
): never {
  if (plain === 0) fail(`function ${name} accepts no arguments (${given} given)`);
  const most = defaults.slice(0, positional).some((value) => value !== undefined) ? 'at most ' : '';
  return fail(
    `function ${name} accepts ${most}${positional} positional argument${positional === 1 ? '' : 's'} (${given} given)`,
  );
}
