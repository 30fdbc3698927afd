import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { splitCommand } from './split-command.ts';

test.each([
  ['./set-labels', ['./set-labels']],
  ['  sed  -e\t"s/a b/c/" ', ['sed', '-e', 's/a b/c/']],
  [`sed -e 's/"x"/\\n/'`, ['sed', '-e', 's/"x"/\\n/']],
  ['fn a\\ b "say \\"hi\\" \\\\ \\n"', ['fn', 'a b', 'say "hi" \\ \\n']],
  ["fn '' x''y", ['fn', '', 'xy']],
  ['fn $HOME `id` ; rm | x > y', ['fn', '$HOME', '`id`', ';', 'rm', '|', 'x', '>', 'y']],
])('%s', (command, words) => {
  expect(splitCommand(command)).toEqual(words);
});

test.each(['', '   ', '""', "fn 'open", 'fn "open', 'fn a\0b'])('%j cannot be read', (command) => {
  expect(() => splitCommand(command)).toThrow(/^exec .* cannot be read: /);
});

test('words in single quotes are unchanged', () => {
  const word = fc.string({ minLength: 1 }).filter((text) => !/['\0]/.test(text));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), (words) => {
      expect(splitCommand(words.map((each) => `'${each}'`).join(' '))).toEqual(words);
    }),
    { numRuns: runs(100) },
  );
});
