import { attributeOf } from '../library/attributes.ts';
import { fail, TABLE } from '../machine/machine.ts';
import type { Argument, Expression, Name } from '../syntax/tree.ts';
import { call } from '../values/calls.ts';
import type { Cell, Evaluate } from '../values/frame.ts';
import { Dict } from '../values/hash-table.ts';
import { elementsOf, getIndex, slice } from '../values/iterate.ts';
import { List, Tuple } from '../values/sequence.ts';
import { reprOf } from '../values/text.ts';
import { truth, typeName, type Value } from '../values/value.ts';
import { compileBinary } from './binary.ts';
import { compileComprehension } from './comprehension.ts';
import { compileFunction } from './functions.ts';
import { unary } from './operators.ts';
import type { Unit } from './unit.ts';

/** Compiles an expression of a resolved script to a function of the variables. */
export function compileExpression(expression: Expression, unit: Unit): Evaluate {
  unit.parts += 1;
  const { machine } = unit;
  const { position } = expression;
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression;
      return () => value;
    }
    case 'name':
      return compileName(expression, unit);
    case 'list':
    case 'tuple': {
      const items = expression.items.map((item) => compileExpression(item, unit));
      if (expression.kind === 'list')
        return (frame) => {
          machine.elements(items.length + 1);
          return new List(items.map((item) => item(frame)));
        };
      return (frame) => {
        machine.elements(items.length + 1);
        return new Tuple(items.map((item) => item(frame)));
      };
    }
    case 'dict': {
      const entries = expression.entries.map((entry) => ({
        key: compileExpression(entry.key, unit),
        value: compileExpression(entry.value, unit),
        position: entry.position,
      }));
      return (frame) => {
        machine.elements(entries.length + TABLE);
        const dict = new Dict();
        for (const entry of entries) {
          const key = entry.key(frame);
          const value = entry.value(frame);
          machine.position = entry.position;
          const { size } = dict;
          dict.set(key, value);
          if (dict.size === size) fail(`duplicate key: ${reprOf(machine, key)}`);
        }
        return dict;
      };
    }
    case 'comprehension':
      return compileComprehension(expression, unit);
    case 'and': {
      const [left, right] = [compileExpression(expression.left, unit), compileExpression(expression.right, unit)];
      return (frame) => {
        const value = left(frame);
        return truth(value) ? right(frame) : value;
      };
    }
    case 'or': {
      const [left, right] = [compileExpression(expression.left, unit), compileExpression(expression.right, unit)];
      return (frame) => {
        const value = left(frame);
        return truth(value) ? value : right(frame);
      };
    }
    case 'not': {
      const operand = compileExpression(expression.operand, unit);
      return (frame) => !truth(operand(frame));
    }
    case 'binary':
      return compileBinary(expression, unit);
    case 'if': {
      const condition = compileExpression(expression.condition, unit);
      const then = compileExpression(expression.then, unit);
      const otherwise = compileExpression(expression.otherwise, unit);
      return (frame) => (truth(condition(frame)) ? then(frame) : otherwise(frame));
    }
    case 'call':
      return compileCall(expression.callee, expression.args, position, unit);
    case 'index': {
      const operand = compileExpression(expression.operand, unit);
      const index = compileExpression(expression.index, unit);
      return (frame) => {
        const value = operand(frame);
        const at = index(frame);
        machine.position = position;
        return getIndex(machine, value, at);
      };
    }
    case 'slice': {
      const nothing: Evaluate = () => null;
      const part = (inner: Expression | undefined) => (inner === undefined ? nothing : compileExpression(inner, unit));
      const operand = compileExpression(expression.operand, unit);
      const [start, stop, step] = [part(expression.start), part(expression.stop), part(expression.step)];
      return (frame) => {
        const value = operand(frame);
        const [from, to, by] = [start(frame), stop(frame), step(frame)];
        machine.position = position;
        return slice(machine, value, from, to, by);
      };
    }
    case 'attribute': {
      const operand = compileExpression(expression.operand, unit);
      const { name } = expression;
      return (frame) => {
        const value = operand(frame);
        machine.position = position;
        return attributeOf(value, name);
      };
    }
    case 'lambda':
      return compileFunction(expression.function, unit);
    default: {
      const operand = compileExpression(expression.operand, unit);
      const { kind } = expression;
      return (frame) => {
        const value = operand(frame);
        machine.position = position;
        return unary(kind, value);
      };
    }
  }
}

function compileName({ name, binding, position }: Name, { machine, globals }: Unit): Evaluate {
  const unset = (kind: string): never => {
    machine.position = position;
    return fail(`${kind} variable ${name} referenced before assignment`);
  };
  switch (binding?.scope) {
    case 'constant': {
      const { value } = binding;
      return () => value;
    }
    case 'global': {
      const { slot } = binding;
      return () => {
        const value = globals[slot];
        return value === undefined ? unset('global') : value;
      };
    }
    case 'free': {
      const { at } = binding;
      return (frame) => {
        const value = (frame.free[at] as Cell).value;
        return value === undefined ? unset('local') : value;
      };
    }
    case 'local': {
      const { slot } = binding;
      if (binding.shared)
        return (frame) => {
          const { value } = frame.slots[slot] as Cell;
          return value === undefined ? unset('local') : value;
        };
      return (frame) => {
        const value = frame.slots[slot] as Value | undefined;
        return value === undefined ? unset('local') : value;
      };
    }
    default:
      return fail(`undefined: ${name}`);
  }
}

function compileCall(target: Expression, args: readonly Argument[], position: number, unit: Unit): Evaluate {
  const { machine } = unit;
  const callee = compileExpression(target, unit);
  const positional = args
    .filter(({ kind }) => kind === 'positional')
    .map(({ value }) => compileExpression(value, unit));
  const [first, second] = positional;
  if (positional.length === args.length) {
    // The common cases, without loops.
    if (first === undefined) return (frame) => call(machine, callee(frame), [], undefined, position);
    if (second === undefined) return (frame) => call(machine, callee(frame), [first(frame)], undefined, position);
    return (frame) => {
      const value = callee(frame);
      return call(
        machine,
        value,
        positional.map((arg) => arg(frame)),
        undefined,
        position,
      );
    };
  }
  const others = args
    .filter(({ kind }) => kind !== 'positional')
    .map(({ kind, name = '', value }) => ({ kind, name, value: compileExpression(value, unit) }));
  return (frame) => {
    const value = callee(frame);
    const values = positional.map((arg) => arg(frame));
    const named = new Map<string, Value>();
    for (const other of others) {
      const given = other.value(frame);
      machine.position = position;
      if (other.kind === 'named') named.set(other.name, given);
      else if (other.kind === 'rest') {
        const rest = elementsOf(machine, given);
        if (rest === undefined) fail(`argument after * must be iterable, not ${typeName(given)}`);
        machine.elements(rest.length);
        for (const item of rest) values.push(item);
      } else {
        if (!(given instanceof Dict)) fail(`argument after ** must be a mapping, not ${typeName(given)}`);
        machine.elements(given.size);
        for (const [key, inner] of given.entries()) {
          if (typeof key !== 'string') fail(`keywords must be strings, not ${typeName(key)}`);
          if (named.has(key)) fail(`multiple values for keyword argument "${key}"`);
          named.set(key, inner);
        }
      }
    }
    return call(machine, value, values, named, position);
  };
}
