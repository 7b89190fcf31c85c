import { generateStaticParamsFor, importPage } from 'nextra/pages';
import { useMDXComponents as getMDXComponents } from '../../../mdx-components';

export const generateStaticParams = generateStaticParamsFor('mdxPath');

export async function generateMetadata(props) {
  const { metadata } = await importPage((await props.params).mdxPath);
  return metadata;
}

const Wrapper = getMDXComponents().wrapper;

export default async function Page(props) {
  const { default: Content, ...wrapped } = await importPage((await props.params).mdxPath);
  return (
    <Wrapper {...wrapped}>
      <Content {...props} params={await props.params} />
    </Wrapper>
  );
}
