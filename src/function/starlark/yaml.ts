import { parseDocument } from 'yaml';
import { positional, wantString } from '../../starlark/library/arguments.ts';
import { fail } from '../../starlark/machine/machine.ts';
import { moduleOf } from '../../starlark/modules/module.ts';
import { createNode } from '../yaml/node-value.ts';
import { newDocument } from '../yaml/print-node.ts';
import { plainFrom, valueFrom } from './yaml-values.ts';

export const YAML = moduleOf('yaml', {
  dumps(machine, args, named) {
    positional('dumps', args, named, 1);
    const node = createNode(plainFrom(machine, args[0] ?? null, 'the value', true));
    const text = newDocument(node).toString({ lineWidth: 0, indentSeq: false });
    machine.text(text.length);
    return text;
  },
  loads(machine, args, named) {
    positional('loads', args, named, 1);
    const text = wantString('loads', args[0] ?? null);
    machine.text(text.length);
    // Its tree takes far more than the text, and reading it takes longer than most.
    machine.elements(text.length * 4);
    machine.step(text.length * 16);
    // The check for duplicate keys would take quadratic time.
    const document = parseDocument(text, { schema: 'failsafe', logLevel: 'silent', uniqueKeys: false });
    const [error] = document.errors;
    if (error !== undefined) fail(`loads: ${error.message.split('\n')[0]}`);
    return valueFrom(machine, document.contents);
  },
});
