import { TABLE } from '../machine/machine.ts';
import type { Comprehension } from '../syntax/tree.ts';
import type { Evaluate, Frame } from '../values/frame.ts';
import { Dict } from '../values/hash-table.ts';
import { List } from '../values/sequence.ts';
import { truth, type Value } from '../values/value.ts';
import { compileTarget } from './assignment.ts';
import { loop } from './loop.ts';
import type { Unit } from './unit.ts';

type Step = (frame: Frame, into: List | Dict) => void;

export function compileComprehension({ key, body, clauses, position }: Comprehension, unit: Unit): Evaluate {
  const { machine } = unit;
  // The operand of the first loop is evaluated once; all else takes steps in every round.
  const [first, ...rest] = clauses;
  const source = first === undefined ? () => null : unit.expression(first.value);
  const before = unit.parts;
  const makeKey = key === undefined ? undefined : unit.expression(key);
  const makeBody = unit.expression(body);
  let step: Step =
    makeKey === undefined
      ? (frame, into) => {
          machine.elements(1);
          (into as List).items.push(makeBody(frame));
        }
      : (frame, into) => {
          machine.elements(1);
          const entryKey = makeKey(frame);
          const value = makeBody(frame);
          machine.position = position;
          (into as Dict).set(entryKey, value);
        };
  for (const clause of rest.reverse()) {
    const inner = step;
    const value = unit.expression(clause.value);
    if (clause.target === undefined)
      step = (frame, into) => {
        if (truth(value(frame))) inner(frame, into);
      };
    else step = loopStep(compileTarget(clause.target, unit), value, inner, clause.position, unit, 1);
  }
  const cost = unit.parts - before + 1;
  const whole =
    first?.target === undefined
      ? step
      : loopStep(compileTarget(first.target, unit), source, step, first.position, unit, cost);
  return (frame) => {
    machine.elements(makeKey === undefined ? 1 : TABLE);
    const into = makeKey === undefined ? new List([]) : new Dict();
    whole(frame, into);
    return into;
  };
}

function loopStep(
  assign: (frame: Frame, value: Value) => void,
  source: Evaluate,
  inner: Step,
  position: number,
  { machine }: Unit,
  cost: number,
): Step {
  return (frame, into) => {
    const value = source(frame);
    machine.position = position;
    loop(machine, value, (item) => {
      machine.step(cost);
      assign(frame, item);
      inner(frame, into);
      return true;
    });
  };
}
