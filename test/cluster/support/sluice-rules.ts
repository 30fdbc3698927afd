const READ = ['get', 'list', 'watch'];
const OWN = [...READ, 'create', 'update', 'patch', 'delete'];

/** The rights of Sluice in a cluster. */
export const SLUICE_RULES = [
  { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: [...READ, 'create', 'update'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...READ, 'create', 'update'] },
  { apiGroups: ['apiregistration.k8s.io'], resources: ['apiservices'], verbs: [...READ, 'patch'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations'],
    verbs: [...READ, 'patch'],
  },
  { apiGroups: ['config.porch.kpt.dev', 'sluice.dev', 'ipam.resource.nephio.org'], resources: ['*'], verbs: OWN },
];
