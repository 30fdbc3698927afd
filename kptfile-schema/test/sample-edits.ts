import type { Kptfile, KptfileEdit } from '../index.ts';

const TEXT_FIELDS = ['description', 'site'] as const;
const LIST_FIELDS = ['emails', 'keywords'] as const;
const FUNCTION = { image: 'ghcr.io/example/set-labels:v0.2.0', configMap: { tier: 'backend', replicas: '3' } };

/** Edits of every kind: those that fit any Kptfile, and those that hit what this one has. */
export function sampleEdits(kptfile: Kptfile): KptfileEdit[] {
  const edits: KptfileEdit[] = [
    {
      op: 'setCondition',
      condition: { type: 'example.com/v1.Claim.n3', status: 'False', reason: 'Pending', message: 'not: yet # done' },
    },
    { op: 'setCondition', condition: { type: 'Checked', status: 'True' } },
    { op: 'removeCondition', type: 'NotThere' },
    { op: 'addGate', conditionType: 'Checked' },
    { op: 'removeGate', conditionType: 'NotThere' },
    { op: 'setLabel', key: 'example.com/tier', value: '1' },
    { op: 'removeLabel', key: 'not-there' },
    { op: 'setAnnotation', key: 'zz.example.com/on', value: 'true' },
    { op: 'removeAnnotation', key: 'not-there' },
    { op: 'setName', name: 'another-name' },
    { op: 'setInfo', field: 'description', value: 'First line.\nSecond line.\n' },
    {
      op: 'setUpstream',
      upstream: {
        type: 'git',
        git: { repo: 'https://example.com/r.git', directory: '/d', ref: 'd/v1' },
        updateStrategy: 'resource-merge',
      },
    },
    { op: 'setUpstream' },
    {
      op: 'setUpstreamLock',
      upstreamLock: {
        type: 'git',
        git: { repo: 'https://example.com/r.git', directory: '/d', ref: 'd/v1', commit: '12345678' },
      },
    },
    { op: 'setUpstreamLock' },
    { op: 'addFunction', list: 'mutators', function: FUNCTION },
    { op: 'addFunction', list: 'mutators', index: 0, function: FUNCTION },
    { op: 'addFunction', list: 'validators', function: { image: 'example/kubeconform:v0.1', configPath: 'fn.yaml' } },
    {
      op: 'setRenderStatus',
      renderStatus: {
        mutationSteps: [{ image: 'x', exitCode: 1, results: [{ message: 'm', tags: { a: 'b' } }] }],
        errorSummary: 'it\nfailed',
      },
    },
    { op: 'setRenderStatus' },
  ];
  for (const field of TEXT_FIELDS) edits.push({ op: 'setInfo', field, value: 'some text' }, { op: 'setInfo', field });
  for (const field of LIST_FIELDS) edits.push({ op: 'setInfo', field, value: ['one', '2'] }, { op: 'setInfo', field });
  for (const { type = '' } of kptfile.status?.conditions ?? []) {
    if (type === '') continue;
    edits.push(
      { op: 'setCondition', condition: { type, status: 'Unknown' } },
      { op: 'setCondition', condition: { type, status: 'True', reason: 'Done', message: 'all is well' } },
      { op: 'removeCondition', type },
    );
  }
  for (const { conditionType = '' } of kptfile.info?.readinessGates ?? []) {
    if (conditionType !== '') edits.push({ op: 'removeGate', conditionType });
  }
  for (const key of Object.keys(kptfile.metadata?.labels ?? {}))
    edits.push({ op: 'removeLabel', key }, { op: 'setLabel', key, value: 'new' });
  for (const key of Object.keys(kptfile.metadata?.annotations ?? {})) {
    edits.push({ op: 'removeAnnotation', key }, { op: 'setAnnotation', key, value: 'new' });
  }
  for (const list of ['mutators', 'validators'] as const) {
    kptfile.pipeline?.[list]?.forEach((_, index) => {
      edits.push({ op: 'removeFunction', list, index });
    });
  }
  return edits;
}
