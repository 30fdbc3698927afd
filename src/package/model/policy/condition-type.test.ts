import { describe, expect, test } from 'vitest';
import { formatConditionType, parseConditionType } from './condition-type.ts';

describe('parseConditionType', () => {
  test('splits group, version, kind and name', () => {
    expect(parseConditionType('ipam.resource.nephio.org/v1alpha1.IPClaim.upf-n3-ipv4')).toEqual({
      apiVersion: 'ipam.resource.nephio.org/v1alpha1',
      kind: 'IPClaim',
      name: 'upf-n3-ipv4',
    });
  });

  test('leaves the dots of a name alone', () => {
    expect(parseConditionType('req.nephio.org/v1alpha1.Interface.n3.edge.example')?.name).toBe('n3.edge.example');
  });

  test('gives back what it read', () => {
    const type = 'workload.nephio.org/v1alpha1.UPFDeployment.upf.edge-01';
    const subject = parseConditionType(type);
    expect(subject === undefined ? undefined : formatConditionType(subject)).toBe(type);
  });

  test.each([
    'Rendered',
    'nephio.org.Specializer.specialize',
    'a/v1.Kind',
    'a/v1.Kind.',
    'a/v1.kind.x',
    'a/1.Kind.x',
    'v1.ConfigMap.x',
    'a/v1.Kind.x\ny',
    '',
    '__proto__',
    `${'a'.repeat(200_000)}/`,
  ])('knows that this names no object (%#)', (type) => {
    expect(parseConditionType(type)).toBeUndefined();
  });
});
