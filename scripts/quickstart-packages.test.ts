import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { QUICKSTART_PACKAGES_FILE, quickstartPackages } from './quickstart-packages.ts';

test('the packages for kubectl are those of the folder; otherwise run: npm run quickstart', () => {
  expect(readFileSync(QUICKSTART_PACKAGES_FILE, 'utf8')).toBe(quickstartPackages());
});
