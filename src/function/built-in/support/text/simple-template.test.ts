import { expect, test } from 'vitest';
import { fillTemplate } from './simple-template.ts';

const PARAMETERS = new Map([
  ['a', 'one'],
  ['b-c', 'two'],
]);

test.each([
  ['plain {text}', 'plain {text}'],
  ['{{.a}}-{{ .a }}', 'one-one'],
  ['{{index . "b-c"}}', 'two'],
  ['x {{- .a -}}  y', 'xoney'],
  ['x\n  {{- /* why }} not */ -}}\n y', 'xy'],
  ['{{"{{ a }}"}} {{`}}`}} {{"\\""}}', '{{ a }} }} "'],
  ['', ''],
])('fills %j', (template, expected) => {
  expect(fillTemplate(template, PARAMETERS)).toBe(expected);
});

test.each(['{{', '{{ .a', '{{"a}}', '{{/* a }}', '{{if .a}}', '{{.}}', '{{.a.b}}', '{{}}', '{{.constructor}}'])(
  'refuses %s',
  (template) => {
    expect(() => fillTemplate(template, PARAMETERS)).toThrow();
  },
);

test('stops where a text grows too long', () => {
  const parameters = new Map([['a', 'x'.repeat(100_000)]]);
  expect(() => fillTemplate('{{.a}}'.repeat(100_000), parameters)).toThrow('longer than');
});
