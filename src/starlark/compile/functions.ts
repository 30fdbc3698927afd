import { slotOrder } from '../syntax/resolver.ts';
import type { FunctionScope } from '../syntax/scope.ts';
import type { FunctionParts } from '../syntax/tree.ts';
import { type FunctionCode, StarlarkFunction } from '../values/callable.ts';
import type { Cell, Evaluate } from '../values/frame.ts';
import type { Unit } from './unit.ts';

/** A definition: running it creates a function with the enclosing variables. */
export function compileFunction({ name, parameters, body, ...parts }: FunctionParts, unit: Unit): Evaluate {
  const { machine } = unit;
  const scope = parts.scope as FunctionScope;
  const ordered = slotOrder(parameters);
  const plain = ordered.filter(({ kind }) => kind === 'plain');
  const star = parameters.findIndex(({ kind }) => kind === 'star' || kind === 'rest');
  const positional =
    star === -1 ? plain.length : plain.filter((parameter) => parameters.indexOf(parameter) < star).length;
  const defaults = plain.map(({ default: value }) => (value === undefined ? undefined : unit.expression(value)));
  const { parts: outside } = unit;
  const run = unit.block(body);
  // The body takes steps when it is called.
  unit.parts = outside;
  const code: FunctionCode = {
    name,
    parameters: ordered.map((parameter) => parameter.name.name),
    positional,
    namedOnly: plain.length - positional,
    takesRest: parameters.some(({ kind }) => kind === 'rest'),
    takesNamedRest: parameters.some(({ kind }) => kind === 'namedRest'),
    slots: scope.locals.length,
    cells: scope.locals.filter(({ shared }) => shared).map(({ slot }) => slot),
    body: (frame) => {
      run(frame);
      return frame.result;
    },
  };
  const free = scope.free.map((binding) => {
    if (binding.scope === 'free') return { own: false, at: binding.at };
    return { own: true, at: binding.scope === 'local' ? binding.slot : -1 };
  });
  return (frame) => {
    machine.elements(defaults.length + free.length + 2);
    const cells = free.map(({ own, at }) => (own ? frame.slots[at] : frame.free[at]) as Cell);
    return new StarlarkFunction(
      code,
      defaults.map((value) => value?.(frame)),
      cells,
    );
  };
}
