import nextra from 'nextra';

const withNextra = nextra({ contentDirBasePath: '/docs', search: false });

export default withNextra({ output: 'export', basePath: '/tea', images: { unoptimized: true } });
