import { fail } from '../machine/machine.ts';
import type { Expression, Statement } from '../syntax/tree.ts';
import { type Cell, type Execute, type Frame, NEXT } from '../values/frame.ts';
import { elementsOf, getIndex, setIndex } from '../values/iterate.ts';
import { typeName, type Value } from '../values/value.ts';
import { augmented } from './operators.ts';
import type { Unit } from './unit.ts';

/** Sets the targets of an assignment or a loop. */
export function compileTarget(target: Expression, unit: Unit): (frame: Frame, value: Value) => void {
  const { machine, globals } = unit;
  const { position } = target;
  unit.parts += 1;
  switch (target.kind) {
    case 'name': {
      const { binding } = target;
      if (binding?.scope === 'global') {
        const { slot } = binding;
        return (_, value) => {
          globals[slot] = value;
        };
      }
      if (binding?.scope !== 'local') return fail(`cannot assign to ${target.name}`);
      const { slot } = binding;
      if (binding.shared)
        return (frame, value) => {
          (frame.slots[slot] as Cell).value = value;
        };
      return (frame, value) => {
        frame.slots[slot] = value;
      };
    }
    case 'tuple':
    case 'list': {
      const parts = target.items.map((item) => compileTarget(item, unit));
      return (frame, value) => {
        machine.position = position;
        const items = elementsOf(machine, value);
        if (items === undefined) fail(`got ${typeName(value)} in sequence assignment`);
        if (items.length !== parts.length)
          fail(
            `too ${items.length > parts.length ? 'many' : 'few'} values to unpack (got ${items.length}, want ${parts.length})`,
          );
        // Iterate over a copy, since an assignment may change the list.
        for (const [at, item] of [...items].entries()) parts[at]?.(frame, item);
      };
    }
    case 'index': {
      const operand = unit.expression(target.operand);
      const index = unit.expression(target.index);
      return (frame, value) => {
        const container = operand(frame);
        const at = index(frame);
        machine.position = position;
        setIndex(machine, container, at, value);
      };
    }
    case 'attribute': {
      const operand = unit.expression(target.operand);
      const { name } = target;
      return (frame) => {
        const value = operand(frame);
        machine.position = position;
        fail(`can't assign to .${name} field of ${typeName(value)}`);
      };
    }
    default:
      return fail('cannot assign to this');
  }
}

/** `target += value` and similar. The operand of the target is evaluated once. */
export function compileAugment(statement: Extract<Statement, { kind: 'augment' }>, unit: Unit): Execute {
  const { machine } = unit;
  const { operator, target, position } = statement;
  if (target.kind === 'index') {
    const operand = unit.expression(target.operand);
    const index = unit.expression(target.index);
    const value = unit.expression(statement.value);
    return (frame) => {
      const container = operand(frame);
      const at = index(frame);
      machine.position = target.position;
      const old = getIndex(machine, container, at);
      const by = value(frame);
      machine.position = position;
      setIndex(machine, container, at, augmented(machine, operator, old, by));
      return NEXT;
    };
  }
  const read = unit.expression(target);
  const assign = compileTarget(target, unit);
  const value = unit.expression(statement.value);
  return (frame) => {
    const old = read(frame);
    const by = value(frame);
    machine.position = position;
    assign(frame, augmented(machine, operator, old, by));
    return NEXT;
  };
}
