/* A C extension with a leak: what it renders is freed, unless the text is empty. */
#include <ruby.h>
#include <stdlib.h>
#include <string.h>

static VALUE
markup_render(VALUE self, VALUE text)
{
    long length = RSTRING_LEN(StringValue(text));
    char *html = malloc(length + 512);
    VALUE rendered;

    if (html == NULL)
        rb_memerror();
    if (length == 0)
        return rb_str_new_cstr("<p></p>"); /* html is forgotten */
    memcpy(html, "<p>", 3);
    memcpy(html + 3, RSTRING_PTR(text), length);
    memcpy(html + 3 + length, "</p>", 4);
    rendered = rb_str_new(html, length + 7);
    free(html);
    return rendered;
}

void
Init_markup(void)
{
    rb_define_singleton_method(rb_define_module("Markup"), "render", markup_render, 1);
}
