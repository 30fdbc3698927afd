import { expect, test } from 'vitest';
import { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { deploymentProblem } from './select-providers.ts';

const REVISION = { key: { repository: 'apps', package: 'web', workspace: 'w' }, revision: 2, namespace: 'default' };

/** A target that has delivered a revision of the package, which its engine reports as healthy. */
function target(name: string, revision?: number, spec: object = {}): never {
  const state = { status: 'True', reason: 'Reported', message: '', since: '2026-01-01T00:00:00Z' };
  const both = { synced: state, healthy: state };
  const packages =
    revision === undefined ? [] : [{ repository: 'apps', package: 'web', revision, commit: 'c', tree: 't' }];
  const deployment = { commit: 'x', delivered: state, ...both, common: both };
  return {
    metadata: { name, namespace: 'default' },
    spec: { selector: { repositories: ['apps'] }, engine: {}, ...spec },
    status: { packages, lastCommit: 'x', deployment },
  } as never;
}

const APPS = { metadata: { name: 'apps', labels: { env: 'prod' } } };
const problemIn = (repository: object | undefined, ...targets: never[]) =>
  deploymentProblem(REVISION as never, {
    targets: () => targets,
    delivered: new DeliveredPackages(),
    repositoryOf: () => repository as never,
  });
const problem = (...targets: never[]) => problemIn(APPS, ...targets);

test('a provider is deployed once every target that selects it has delivered it', () => {
  expect(problem()).toBe('is not delivered by any target');
  expect(problem(target('west'))).toBe('is not delivered by any target');
  expect(problem(target('east', 2))).toBeUndefined();
  expect(problem(target('east', 2), target('west', 1))).toBe('is not delivered by target west yet');
  expect(problem(target('east', 2), target('west'))).toBe('is not delivered by target west yet');
  expect(problem(target('east', 2), target('west', 1, { suspend: true }))).toBe('is not delivered by target west yet');
});

test('a target that a pin keeps at another revision, or that selects other packages, is not waited for', () => {
  const pins = [{ repository: 'apps', package: 'web', revision: 1 }];
  expect(problem(target('east', 2), target('west', 1, { pins }))).toBeUndefined();
  expect(problem(target('east', 2), target('west', undefined, { pins }))).toBe('is not delivered by target west yet');
  expect(problem(target('east', 2), target('west', undefined, { selector: { packages: ['x'] } }))).toBeUndefined();
});

test('a provider is not deployed while the labels of its repository are not known, by which targets select it', () => {
  const west = target('west', undefined, { selector: { repositorySelector: { matchLabels: { env: 'prod' } } } });
  expect(problem(target('east', 2), west)).toBe('is not delivered by target west yet');
  expect(problemIn(undefined, target('east', 2), west)).toBe('is of the repository apps, which is not registered');
});
