import { expect, test } from 'vitest';
import { knownTypes, lookalikeProblem } from './lookalike.ts';

test.each([
  'Tested',
  'example.com/SecurityReview',
  'ipam.resource.nephio.org/v1alpha1.IPClaim.upf-edge-n3',
  'Security Review',
  'example.com/Проверено',
  'example.com/検査済み'.slice(0, 14),
  'example.com/Geprüft',
])('%j is a condition type', (type) => {
  expect(lookalikeProblem(type, knownTypes(['Tested', 'example.com/Review']))).toBeUndefined();
});

test.each([
  ['', 'needs 1 to 400'],
  ['Tes\u200bted', 'cannot be seen'],
  ['Tested\u2060', 'cannot be seen'],
  ['\u202eTested', 'cannot be seen'],
  ['Tes\nted', 'control characters'],
  ['Tested ', 'begins or ends with a space'],
  [' Tested', 'begins or ends with a space'],
  ['Tes\u00a0ted', 'a space other'],
  ['Т\u0435sted', 'several scripts'],
  ['T\u0435sted', 'several scripts'],
  ['Ｔested', 'other forms'],
  ['\u0430\u0441\u0435', 'looks like ace'],
  ['example.com/\u0421\u041e\u0420', 'looks like example.com/COP'],
])('%j is refused: %s', (type, why) => {
  expect(lookalikeProblem(type, knownTypes(['Tested', 'ace', 'example.com/COP']))).toContain(why);
  expect(lookalikeProblem(type, knownTypes(['Tested', 'ace', 'example.com/COP']))).toMatch(/^[\x20-\x7e]*$/);
});
