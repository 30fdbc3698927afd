import type { Expression } from '../syntax/tree.ts';
import { equal } from '../values/compare.ts';
import type { Evaluate } from '../values/frame.ts';
import { binary } from './operators.ts';
import type { Unit } from './unit.ts';

/** A binary operator: common cases of ints and texts are done inline, other cases in `binary`. */
export function compileBinary(expression: Extract<Expression, { kind: 'binary' }>, unit: Unit): Evaluate {
  const { machine } = unit;
  const { operator, position } = expression;
  const left = unit.expression(expression.left);
  const right = unit.expression(expression.right);
  const slow: (a: ReturnType<Evaluate>, b: ReturnType<Evaluate>) => ReturnType<Evaluate> = (a, b) => {
    machine.position = position;
    return binary(machine, operator, a, b);
  };
  switch (operator) {
    case '+':
      return (frame) => {
        const a = left(frame);
        const b = right(frame);
        if (typeof a === 'number' && typeof b === 'number') {
          const sum = a + b;
          if (Number.isSafeInteger(sum)) return sum;
        }
        return slow(a, b);
      };
    case '-':
      return (frame) => {
        const a = left(frame);
        const b = right(frame);
        if (typeof a === 'number' && typeof b === 'number') {
          const difference = a - b;
          if (Number.isSafeInteger(difference)) return difference;
        }
        return slow(a, b);
      };
    case '<':
      return (frame) => {
        const a = left(frame);
        const b = right(frame);
        return typeof a === 'number' && typeof b === 'number' ? a < b : slow(a, b);
      };
    case '>':
      return (frame) => {
        const a = left(frame);
        const b = right(frame);
        return typeof a === 'number' && typeof b === 'number' ? a > b : slow(a, b);
      };
    case '==':
    case '!=': {
      const same = operator === '==';
      return (frame) => {
        const a = left(frame);
        const b = right(frame);
        if (typeof a === 'number' && typeof b === 'number') return (a === b) === same;
        machine.position = position;
        return equal(machine, a, b) === same;
      };
    }
    default:
      return (frame) => {
        const a = left(frame);
        return slow(a, right(frame));
      };
  }
}
